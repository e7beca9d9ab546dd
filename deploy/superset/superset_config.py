"""The configuration of Superset. The key comes from .env; its database is a file in the volume."""

import os

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = "sqlite:////superset/superset.db?check_same_thread=false"
TALISMAN_ENABLED = False  # it would redirect browsers to https, which is not configured here
WTF_CSRF_ENABLED = True
FEATURE_FLAGS = {"DASHBOARD_RBAC": True}
