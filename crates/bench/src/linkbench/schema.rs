//! LinkBench's three tables, with its indexes and its character set.

use crate::server::checked_engine;
use crate::Error;
use teak_client::Connection;

/// Makes the tables anew in the connection's database; `partitions` of the links by `id1`, or 0 for none.
pub fn create(connection: &mut Connection, engine: &str, partitions: u32) -> Result<(), Error> {
    let engine = checked_engine(engine)?;
    let partitioning = if partitions > 0 {
        format!(" PARTITION BY KEY (id1) PARTITIONS {partitions}")
    } else {
        String::new()
    };
    for table in ["linktable", "counttable", "nodetable"] {
        connection.execute(format!("DROP TABLE IF EXISTS {table}"))?;
    }
    // Without this a server that does not have the engine takes its default, and something else is measured.
    connection.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ENGINE_SUBSTITUTION')")?;
    connection.execute(format!(
        "CREATE TABLE linktable (\
         id1 bigint(20) unsigned NOT NULL DEFAULT 0, id2 bigint(20) unsigned NOT NULL DEFAULT 0, \
         link_type bigint(20) unsigned NOT NULL DEFAULT 0, visibility tinyint(3) NOT NULL DEFAULT 0, \
         data varchar(255) NOT NULL DEFAULT '', time bigint(20) unsigned NOT NULL DEFAULT 0, \
         version int(11) unsigned NOT NULL DEFAULT 0, \
         PRIMARY KEY (link_type, id1, id2), \
         KEY id1_type (id1, link_type, visibility, time, id2, version, data)\
         ) ENGINE={engine} DEFAULT CHARSET=latin1{partitioning}"
    ))?;
    connection.execute(format!(
        "CREATE TABLE counttable (\
         id bigint(20) unsigned NOT NULL DEFAULT 0, link_type bigint(20) unsigned NOT NULL DEFAULT 0, \
         count int(10) unsigned NOT NULL DEFAULT 0, time bigint(20) unsigned NOT NULL DEFAULT 0, \
         version bigint(20) unsigned NOT NULL DEFAULT 0, \
         PRIMARY KEY (id, link_type)\
         ) ENGINE={engine} DEFAULT CHARSET=latin1"
    ))?;
    connection.execute(format!(
        "CREATE TABLE nodetable (\
         id bigint(20) unsigned NOT NULL AUTO_INCREMENT, type int(10) unsigned NOT NULL, \
         version bigint(20) unsigned NOT NULL, time int(10) unsigned NOT NULL, data mediumtext NOT NULL, \
         PRIMARY KEY (id)\
         ) ENGINE={engine} DEFAULT CHARSET=latin1"
    ))?;
    Ok(())
}

/// The engine of the tables that are there.
pub fn engine(connection: &mut Connection) -> Result<String, Error> {
    let engine = connection.value(
        "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'linktable'",
    )?;
    engine.ok_or_else(|| Error::Usage("the database has no tables of LinkBench: load them first".into()))
}
