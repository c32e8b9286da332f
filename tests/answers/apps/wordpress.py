"""WordPress: installed, filled, searched, changed, cleaned up, by its own functions (wordpress.php)."""

import os
import shutil

from place import numbered

CONFIGURATION = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', ''); define('DB_HOST', '127.0.0.1:%s');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', ''); define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', true); define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTH_KEY', 'a'); define('SECURE_AUTH_KEY', 'b'); define('LOGGED_IN_KEY', 'c'); define('NONCE_KEY', 'd'); define('DISABLE_WP_CRON', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""


def install(place):
    """Debian's packages, unpacked."""
    place.interpreter = place.php("mysqlnd", "mysqli", "mbstring", "xml", "dom", "simplexml", "tokenizer", "ctype", "exif", "fileinfo", "iconv")
    place.source = os.path.join(place.debian("wordpress"), "usr/share/wordpress")


def run(place, server):
    """The lines that the program prints."""
    root = place.path("site")
    shutil.rmtree(root, ignore_errors=True)
    # Links to libraries that other packages have stay broken: nothing here needs them.
    shutil.copytree(place.source, root, symlinks=True)
    os.unlink(os.path.join(root, "wp-config.php"))
    with open(os.path.join(root, "wp-config.php"), "w", encoding="utf-8") as out:
        out.write(CONFIGURATION % server.port)
    server.query("CREATE DATABASE wordpress", database=None)
    script = os.path.join(os.path.dirname(__file__), "wordpress.php")
    outcomes = numbered(place.output(*place.interpreter, script, root))
    engines = server.query("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'wordpress' AND ENGINE = @@enforce_storage_engine")
    return {**outcomes, "tables of the engine": str(engines[0][0])}
