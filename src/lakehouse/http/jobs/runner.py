"""Runs jobs: first come, first served, each in a process of its own; keeps their records."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from lakehouse.config.load import dump_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotFoundError, ServiceError
from lakehouse.core.masking import mask
from lakehouse.http.database import ServiceDatabase
from lakehouse.http.errors import shown_to
from lakehouse.http.jobs.model import CANCELED, ENDED, FAILED, QUEUED, RUNNING, SUCCEEDED, Job
from lakehouse.http.principal import Principal
from lakehouse.process.daemons import module_command

#: How long a canceled job may take to clean up before it is killed.
_STOP_S = 10.0
_KEPT_JOBS = 10_000
_CANCELED_ERROR = {"error": "canceled", "message": "The job was canceled.", "hint": ""}
_DIED_ERROR = {"error": "failed", "message": "The process of the job ended.", "hint": "See logs/serve.log."}


class JobRunner:
    """The jobs of a service."""

    def __init__(self, database: ServiceDatabase, settings: Settings, folder: Path, log: Path) -> None:
        """
        Args:
            folder: where uploaded files wait for their job; a job's own folder is removed once it has succeeded.
        """
        self._database, self._settings, self.folder, self._log = database, settings, folder, log
        self._threads = ThreadPoolExecutor(max(settings.serve.jobs, 1), thread_name_prefix="job")
        self._processes: dict[str, subprocess.Popen[str]] = {}
        #: The jobs that somebody canceled while they ran, and those whose change is being committed.
        self._canceled: set[str] = set()
        self._committing: set[str] = set()
        self._stopping = threading.Lock()
        self._changed = threading.Condition()
        self._versions: dict[str, int] = {}
        self._closed = False
        self._fail_interrupted()

    def start(self, kind: str, request: dict[str, Any], owner: Principal, branch: str = "") -> Job:
        """Record a job and run it when its turn comes."""
        request = {**request, "author": owner.author}
        namespaces = ",".join(sorted(request.get("namespaces", ())))
        job = Job(f"job_{secrets.token_hex(10)}", kind, owner.id, QUEUED, _now(), request, branch=branch)
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO jobs (id, kind, owner, state, created_at, request, namespaces, branch)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (job.id, kind, owner.id, QUEUED, job.created_at, json.dumps(request), namespaces, branch),
            )
            db.execute(
                "DELETE FROM jobs WHERE state NOT IN (?, ?) AND id NOT IN (SELECT id FROM jobs ORDER BY created_at DESC LIMIT ?)",
                (QUEUED, RUNNING, _KEPT_JOBS),
            )
        self._threads.submit(self._run, job.id)
        return job

    def get(self, identifier: str, caller: Principal) -> Job:
        """A job of the caller, or of anybody for an admin."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM jobs WHERE id = ?", (identifier,)).fetchone()
        if row is None or not _may_see(row["owner"], caller):
            raise NotFoundError(f"There is no job {identifier[:40]!r}.", "List them: GET /jobs")
        return _seen_by(caller, Job.from_row(row))

    def all(self, caller: Principal) -> list[Job]:
        """The jobs that the caller may see, newest first."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM jobs ORDER BY created_at DESC, rowid DESC").fetchall()
        return [_seen_by(caller, Job.from_row(row)) for row in rows if _may_see(row["owner"], caller)]

    def counts(self) -> dict[str, int]:
        """The number of jobs in each state."""
        with self._database.reading() as db:
            return dict(db.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())

    def cancel(self, identifier: str, caller: Principal) -> Job:
        """Stop a job.

        One that waits, starts or works ends as canceled, and its tables are as they were. One that commits ends as it would
        have ended. One that has ended stays as it is.
        """
        job = self.get(identifier, caller)
        if job.state == QUEUED and self._update(job.id, QUEUED, state=CANCELED, ended_at=_now()):
            return self.get(identifier, caller)
        if self.get(identifier, caller).state == RUNNING:
            with self._stopping:
                self._canceled.add(job.id)
                self._interrupt(job.id)
            killer = threading.Timer(_STOP_S, self._kill, [job.id])
            killer.daemon = True
            killer.start()
            self.wait_for_end(job.id, _STOP_S + 1)
            killer.cancel()
        return self.get(identifier, caller)

    def _interrupt(self, identifier: str) -> None:
        """Ask the process of a job to end, if it is there already: else it is asked as soon as it is."""
        process = self._processes.get(identifier)
        if process is not None and identifier not in self._committing:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)

    def _kill(self, identifier: str) -> None:
        process = self._processes.get(identifier)
        if process is not None and identifier not in self._committing:
            with suppress(ProcessLookupError):
                process.kill()

    def resume(self, identifier: str, caller: Principal) -> Job:
        """Do a job again that failed or was canceled: what it had committed is skipped."""
        job = self.get(identifier, caller)
        if job.state not in (FAILED, CANCELED):
            raise ServiceError(f"The job {job.id} is {job.state}.", "Only failed and canceled jobs can be resumed.")
        kind, request = job.kind, job.request
        if kind == "run":
            kind, request = "resume", {**request, "run": request["id"]}
        return self.start(kind, {**request, "namespaces": list(job.namespaces)}, caller, job.branch)

    def version(self, identifier: str) -> int:
        """A number that grows whenever the record of a job changes."""
        return self._versions.get(identifier, 0)

    def wait(self, identifier: str, timeout_s: float, seen: int = -1) -> int:
        """Wait until the record of a job differs from the version `seen`, or it has ended; returns its version."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._versions.get(identifier, 0) != seen, timeout_s)
            return self._versions.get(identifier, 0)

    def wait_for_end(self, identifier: str, timeout_s: float) -> None:
        """Wait until a job has ended, or the time is over."""
        deadline, seen = time.monotonic() + timeout_s, -1
        while (left := deadline - time.monotonic()) > 0 and not self._closed:
            seen = self.wait(identifier, left, seen)
            with self._database.reading() as db:
                row = db.execute("SELECT state FROM jobs WHERE id = ?", (identifier,)).fetchone()
            if row is None or row["state"] in ENDED:
                return

    def close(self) -> None:
        """Stop all jobs; they read as failed after the next start."""
        self._closed = True
        for process in list(self._processes.values()):
            with suppress(ProcessLookupError):
                process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

    # ---- one job ------------------------------------------------------------------------------------------------

    def _run(self, identifier: str) -> None:
        if self._closed or not self._update(identifier, QUEUED, state=RUNNING, started_at=_now()):
            return  # canceled before its turn
        with self._database.reading() as db:
            job = Job.from_row(db.execute("SELECT * FROM jobs WHERE id = ?", (identifier,)).fetchone())
        outcome: dict[str, Any] = {}
        try:
            outcome = self._follow(job)
        except OSError as exc:
            outcome = {"error": {"error": "failed", "message": f"The job could not be started: {exc}.", "hint": ""}}
        if self._closed:
            return  # the next start of the service records what happened
        if "result" in outcome:
            self._finish(job, SUCCEEDED, result=json.dumps(outcome["result"]))
            return
        if (
            job.id in self._canceled
        ):  # whatever it was doing: a process that just starts cannot say that it was canceled
            self._finish(job, CANCELED, error=json.dumps(_CANCELED_ERROR))
            return
        self._finish(job, FAILED, error=json.dumps(outcome.get("error") or _DIED_ERROR))

    def _follow(self, job: Job) -> dict[str, Any]:
        """Start the process, record its progress, return its last line."""
        with self._log.open("ab") as errors:
            process = self._start(errors)
        with self._stopping:
            self._processes[job.id] = process
            if job.id in self._canceled:
                self._interrupt(job.id)
        outcome: dict[str, Any] = {}
        try:
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._message(job)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                message = json.loads(line)
                if "progress" in message:
                    self._update(job.id, RUNNING, progress=mask(str(message["progress"]))[:500])
                if "committing" in message:
                    self._note_commit(job.id, message["committing"])
                outcome.update(message)
            process.wait()
        finally:
            del self._processes[job.id]
            self._committing.discard(job.id)
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()
        return outcome

    def _note_commit(self, identifier: str, commits: bool) -> None:
        with self._stopping:
            if commits:
                self._committing.add(identifier)
                self._update(identifier, RUNNING, progress="Committing")
                return
            self._committing.discard(identifier)
            if identifier in self._canceled:  # while it tried to commit, in vain
                self._interrupt(identifier)

    def _start(self, errors: IO[bytes]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            module_command("lakehouse.http.jobs.process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={**os.environ, "TZ": "UTC"},
        )

    def _message(self, job: Job) -> dict[str, Any]:
        settings = self._settings
        return {
            "kind": job.kind,
            "request": job.request,
            "settings": dump_settings(settings, sources=True),
            "origins": dict(settings.origins),
        }

    def _finish(self, job: Job, state: str, **values: str) -> None:
        self._update(job.id, RUNNING, state=state, ended_at=_now(), **values)
        self._canceled.discard(job.id)
        folder = job.request.get("folder")
        if state == SUCCEEDED and folder:
            shutil.rmtree(folder, ignore_errors=True)

    def _update(self, identifier: str, expected: str, **values: str) -> bool:
        """Change a record that is in the expected state; False if it is not."""
        columns = ", ".join(f"{name} = ?" for name in values)
        with self._database.transaction() as db:
            done = db.execute(
                f"UPDATE jobs SET {columns} WHERE id = ? AND state = ?", (*values.values(), identifier, expected)
            )
        with self._changed:
            self._versions[identifier] = self._versions.get(identifier, 0) + 1
            self._changed.notify_all()
        return done.rowcount == 1

    def _fail_interrupted(self) -> None:
        """Jobs of a service that ended: those that ran have failed, those that waited are run now."""
        error = {
            "error": "interrupted",
            "message": "The service stopped during this job.",
            "hint": "POST /jobs/{id}/resume does it again; what was committed is skipped.",
        }
        with self._database.transaction() as db:
            db.execute(
                "UPDATE jobs SET state = ?, ended_at = ?, error = ? WHERE state = ?",
                (FAILED, _now(), json.dumps(error), RUNNING),
            )
            kept = {
                json.loads(row["request"]).get("folder")
                for row in db.execute("SELECT request FROM jobs WHERE state != ?", (SUCCEEDED,))
            }
            waiting = [
                row["id"] for row in db.execute("SELECT id FROM jobs WHERE state = ? ORDER BY created_at", (QUEUED,))
            ]
        for upload in self.folder.glob("*"):
            if str(upload) not in kept:  # the service stopped while it arrived
                shutil.rmtree(upload, ignore_errors=True)
        for identifier in waiting:
            self._threads.submit(self._run, identifier)


def _may_see(owner: str, caller: Principal) -> bool:
    return owner == caller.id or caller.is_owner


def _seen_by(caller: Principal, job: Job) -> Job:
    return replace(job, error=shown_to(caller, job.error)) if job.error else job


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
