"""Superset's settings. The key comes from .env; its own database is a file in the volume."""

import os

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = "sqlite:////superset/superset.db?check_same_thread=false"
TALISMAN_ENABLED = False  # it would send browsers to https, which nothing here speaks
WTF_CSRF_ENABLED = True
FEATURE_FLAGS = {"DASHBOARD_RBAC": True}
