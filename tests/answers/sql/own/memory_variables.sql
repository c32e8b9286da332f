-- The cache by size and by share, what follows it, and what is said of memory.
SELECT @@GLOBAL.teak_cache_size_pct, @@GLOBAL.teak_checkpoint_log_size;
SET @before = @@GLOBAL.teak_cache_size;
SET GLOBAL teak_cache_size_pct = 1;
SET @one = @@GLOBAL.teak_cache_size;
SELECT @one >= 8 << 20, @one % (1 << 20), @@GLOBAL.teak_cache_size_pct;
SELECT variable_value = @one FROM information_schema.global_status WHERE variable_name = 'Teak_cache_bytes_budget';
SET GLOBAL teak_cache_size_pct = 2;
SELECT @@GLOBAL.teak_cache_size >= @one, @@GLOBAL.teak_cache_size <= 2 * @one + (1 << 20);
-- A size of its own ends the share.
SET GLOBAL teak_cache_size = @before;
SELECT @@GLOBAL.teak_cache_size = @before, @@GLOBAL.teak_cache_size_pct;
SET GLOBAL teak_cache_size_pct = 0;
SELECT @@GLOBAL.teak_cache_size = @before;
SET GLOBAL teak_cache_size_pct = 91;
SELECT @@GLOBAL.teak_cache_size_pct;
SET GLOBAL teak_cache_size_pct = -1;
SELECT @@GLOBAL.teak_cache_size_pct;
SET GLOBAL teak_cache_size_pct = '80%';
SET SESSION teak_cache_size_pct = 1;
SET GLOBAL teak_cache_size = @before;
SET GLOBAL teak_checkpoint_log_size = 1000000;
SELECT @@GLOBAL.teak_checkpoint_log_size;
SET GLOBAL teak_checkpoint_log_size = 5 << 20;
SELECT @@GLOBAL.teak_checkpoint_log_size;
SET GLOBAL teak_checkpoint_log_size = DEFAULT;
SELECT @@GLOBAL.teak_checkpoint_log_size;
SELECT @@GLOBAL.teak_data_file_buffering;
SET GLOBAL teak_data_file_buffering = 'OFF';
SELECT @@GLOBAL.teak_data_file_buffering;
SET GLOBAL teak_data_file_buffering = 'SOME';
SET SESSION teak_data_file_buffering = 'ON';
SET GLOBAL teak_data_file_buffering = DEFAULT;
SELECT @@GLOBAL.teak_data_file_buffering;
SELECT variable_name FROM information_schema.global_status WHERE variable_name LIKE 'teak\_memory\_%' ORDER BY 1;
-- All of the process has a name.
CREATE TEMPORARY TABLE said ENGINE=MEMORY SELECT variable_name AS name, variable_value AS bytes FROM information_schema.global_status WHERE variable_name LIKE 'teak\_memory\_%';
SELECT SUM(IF(name = 'Teak_memory_resident', bytes, -bytes)) AS without_name FROM said WHERE name NOT IN ('Teak_memory_bytes_max', 'Teak_memory_bytes_used', 'Teak_memory_rows_lost') AND name NOT LIKE 'Teak\_memory\_of\_%';
