-- mariadb-backup does not copy Teak's tables; as it begins (BACKUP STAGE START), there is a warning if there are any.
BACKUP STAGE START;
SHOW WARNINGS;
BACKUP STAGE END;
-- Temporary tables are in no backup.
CREATE TEMPORARY TABLE gone (id INT) ENGINE=Teak;
BACKUP STAGE START;
BACKUP STAGE END;
CREATE TABLE t (id INT PRIMARY KEY) ENGINE=Teak PARTITION BY HASH (id) PARTITIONS 2;
CREATE TABLE u (id INT) ENGINE=Teak;
BACKUP STAGE START;
-- Once for a backup.
BACKUP STAGE BLOCK_COMMIT;
BACKUP STAGE END;
-- What teak backup says before.
SET SESSION teak_backup_warning = OFF;
BACKUP STAGE START;
BACKUP STAGE END;
SET SESSION teak_backup_warning = DEFAULT;
BACKUP STAGE START;
BACKUP STAGE END;
DROP TABLE t, u;
