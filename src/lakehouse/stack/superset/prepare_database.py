"""Run by Superset's Python before its first start: creates or migrates its database, its roles and the user admin."""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

import os

from flask_migrate import upgrade
from superset.app import create_app

application = create_app()
with application.app_context():
    import superset
    from superset.extensions import appbuilder, db, security_manager

    upgrade(directory=os.path.join(os.path.dirname(superset.__file__), "migrations"))
    appbuilder.add_permissions(update_perms=True)
    security_manager.sync_role_definitions()
    password = os.environ["SUPERSET_ADMIN_PASSWORD"]
    user = security_manager.find_user("admin")
    if user is None:
        role = security_manager.find_role("Admin")
        security_manager.add_user("admin", "Lake", "House", "admin@localhost", role, password=password)
    else:
        security_manager.reset_password(user.id, password)
    db.session.commit()
