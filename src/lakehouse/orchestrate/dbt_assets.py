"""The models of the dbt project as Dagster assets, downstream of the pipelines' assets."""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from lakehouse.core.errors import LakeError
from lakehouse.core.requests import RunRequest
from lakehouse.orchestrate.assets import RESOURCE, LakeResource, asset_key
from lakehouse.orchestrate.dbt import run_dbt


def dbt_models(manifest: Path, project: Path) -> dg.AssetsDefinition:
    """Define one op for all models, because a dbt run is one transaction."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dagster_dbt import DagsterDbtTranslator, DagsterDbtTranslatorSettings, dbt_assets

    class Translator(DagsterDbtTranslator):
        """Maps a dbt source to the asset that builds its table, and a model to an asset with its table's name."""

        def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
            return asset_key(f"{dbt_resource_props['schema']}.{dbt_resource_props['name']}")

        def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str | None:
            return "dbt"

    # dbt's tests decide whether the run is published, so they are not asset checks that run afterwards.
    translator = Translator(settings=DagsterDbtTranslatorSettings(enable_asset_checks=False))

    @dbt_assets(manifest=manifest, dagster_dbt_translator=translator, name="dbt", required_resource_keys={RESOURCE})
    def build(context: dg.AssetExecutionContext) -> Iterator[Any]:
        resource: LakeResource = getattr(context.resources, RESOURCE)
        run_id = f"dagster_{context.run.run_id.replace('-', '')[:16]}"
        request = RunRequest(id=run_id, author=resource.author)
        try:
            record, results = run_dbt(resource.lake, project, ["build"], context.log.info, request)
        except LakeError as exc:
            raise dg.Failure(f"{exc.message}\n{exc.hint}") from exc
        for result in results:
            key = asset_key(f"{result.node.schema}.{result.node.name}")
            if str(result.node.resource_type) == "model" and key in context.selected_asset_keys:
                current = resource.lake.describe(".".join(key.path)).current
                metadata = {
                    "run": record.id,
                    "snapshot": current.id if current else "",
                    "seconds": result.execution_time,
                }
                yield dg.MaterializeResult(asset_key=key, metadata=metadata)

    return build
