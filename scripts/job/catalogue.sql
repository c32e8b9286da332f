-- The package catalogue, with the indexes that a site searching it would have. ENGINE comes from the session's default.
CREATE TABLE packages (
    id              INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    package         VARCHAR(120) CHARACTER SET ascii NOT NULL,
    version         VARCHAR(120) CHARACTER SET ascii NOT NULL,
    architecture    VARCHAR(20) CHARACTER SET ascii NOT NULL,
    section         VARCHAR(60),
    priority        VARCHAR(20),
    maintainer      VARCHAR(255),
    installed_size  BIGINT UNSIGNED COMMENT 'KiB',
    size            BIGINT UNSIGNED NOT NULL COMMENT 'bytes',
    filename        VARCHAR(255) CHARACTER SET ascii NOT NULL,
    sha256          BINARY(32) NOT NULL,
    homepage        VARCHAR(1000),
    depends         MEDIUMTEXT,
    description     MEDIUMTEXT,
    UNIQUE KEY filename (filename),
    UNIQUE KEY sha256 (sha256),
    KEY package_version (package, version),
    KEY section_priority (section, priority),
    KEY maintainer (maintainer),
    KEY installed_size (installed_size)
) DEFAULT CHARACTER SET utf8mb4;
