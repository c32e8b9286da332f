-- Checkpoints can be paused by who copies the engine's files. Work goes on; what needs a checkpoint is told why there is none.
CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=Teak;
INSERT INTO t SELECT seq, seq FROM seq_1_to_1000;
SET GLOBAL teak_checkpoint_now = 1;
SET SESSION teak_pause_checkpoints = ON;
SELECT @@SESSION.teak_pause_checkpoints;
UPDATE t SET v = v + 1;
SET GLOBAL teak_checkpoint_now = 1;
SHOW WARNINGS;
SET SESSION teak_pause_checkpoints = OFF;
SET GLOBAL teak_checkpoint_now = 1;
SELECT SUM(v) FROM t;
-- The server's own statement for it.
FLUSH TABLES WITH READ LOCK AND DISABLE CHECKPOINT;
SET GLOBAL teak_checkpoint_now = 1;
UNLOCK TABLES;
SET GLOBAL teak_checkpoint_now = 1;
-- A pause ends however the variable comes to be OFF, and there is none that does not show.
SET SESSION teak_pause_checkpoints = ON;
SELECT VARIABLE_VALUE = CONCAT('connection ', CONNECTION_ID()) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints_paused_by';
SET SESSION teak_pause_checkpoints = DEFAULT;
SELECT @@SESSION.teak_pause_checkpoints, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints_paused_by';
SET SESSION teak_checkpoint_now = 1;
SET STATEMENT teak_pause_checkpoints = ON FOR SELECT VARIABLE_VALUE <> '' FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints_paused_by';
SELECT @@SESSION.teak_pause_checkpoints, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints_paused_by';
SET GLOBAL teak_checkpoint_now = 1;
SET GLOBAL teak_pause_checkpoints = ON;
SELECT @@GLOBAL.teak_pause_checkpoints, @@SESSION.teak_pause_checkpoints, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_checkpoints_paused_by';
SET SESSION teak_checkpoint_now = 1;
SELECT @@GLOBAL.teak_checkpoint_now, @@SESSION.teak_checkpoint_now;
-- Everything before this is durable.
SELECT VARIABLE_VALUE > 0 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Teak_lsn_flushed';
DROP TABLE t;
