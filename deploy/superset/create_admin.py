"""Create the user admin of Superset with the password from .env, unless it exists."""

import os

from superset.app import create_app

application = create_app()
with application.app_context():
    users = application.appbuilder.sm
    if not users.find_user("admin"):
        role = users.find_role("Admin")
        password = os.environ["SUPERSET_ADMIN_PASSWORD"]
        users.add_user("admin", "Lake", "House", "admin@localhost", role, password=password)
