"""What several tests share: servers, lakes, writers and watchers. No test imports another test."""
