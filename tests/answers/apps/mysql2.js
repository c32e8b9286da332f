// The driver as applications use it. Prints what came of each step, which must not depend on the engine.
// Usage: node mysql2.js PORT
const mysql = require("mysql2/promise");
const crypto = require("crypto");

const settings = { host: "127.0.0.1", port: +process.argv[2], user: "root", database: "test", multipleStatements: true };
const code = (error) => `${error.code} ${error.errno} ${error.sqlState}`;
const attempt = (promise) => promise.then(() => "done", code);
const md5 = (data) => crypto.createHash("md5").update(data).digest("hex");

async function types(c) {
  await c.query(`CREATE TABLE types (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, i INT, d DECIMAL(30,10), f DOUBLE, t DATETIME(6), y YEAR, b BLOB, l LONGBLOB,
    s VARCHAR(100) CHARACTER SET utf8mb4, j JSON, e ENUM('a','b'), st SET('x','y'), bits BIT(5), g GEOMETRY, u UUID, ip INET6)`);
  const values = [7, "12345678901234567890.0123456789", 0.1, "2024-02-29 23:59:59.123456", 2024, Buffer.from([0, 255, 39, 92]), Buffer.alloc(5 << 20, 3), "ä€😀'\\", '{"a": [1, "😀"]}', "b", "x,y", 5];
  const statement = "INSERT INTO types (i, d, f, t, y, b, l, s, j, e, st, bits, g, u, ip) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ST_GeomFromText('LINESTRING(0 0,1 1)'), '123e4567-e89b-12d3-a456-426655440000', '::1')";
  const [inserted] = await c.execute(statement, values);
  await c.query(statement, values);
  console.log("inserted", inserted.insertId, inserted.affectedRows);
  for (const method of ["query", "execute"]) {
    const [[row]] = await c[method]("SELECT *, ST_AsText(g) AS text FROM types WHERE id = ?", [1]);
    console.log(method, row.d, row.f, row.t.getTime(), row.y, row.b.toString("hex"), md5(row.l), row.s, JSON.stringify(row.j), row.e, row.st, row.bits.toString("hex"), row.text, row.u, row.ip);
  }
  console.log("too long", await attempt(c.query("INSERT INTO types (s) VALUES (REPEAT('x', 101))")), "out of range", await attempt(c.query("INSERT INTO types (i) VALUES (1e12)")));
}

async function batches(c) {
  await c.query("CREATE TABLE batch (id INT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(50), KEY (a), UNIQUE (s))");
  const rows = [...Array(20000).keys()].map((i) => [i % 100, `row ${i}`]);
  const [done] = await c.query("INSERT INTO batch (a, s) VALUES ?", [rows]);
  console.log("batch", done.affectedRows, done.insertId, done.info);
  const prepared = await c.prepare("SELECT COUNT(*) AS n, SUM(id) AS s FROM batch WHERE a BETWEEN ? AND ?");
  for (const range of [[0, 9], [50, 50], [99, 1]]) console.log("prepared", JSON.stringify((await prepared.execute(range))[0]));
  await prepared.close();
  console.log("duplicate", await attempt(c.query("INSERT INTO batch (a, s) VALUES (1, 'new'), (1, 'row 5')")), (await c.query("SELECT COUNT(*) AS n FROM batch"))[0][0].n);
  console.log("upsert", (await c.query("INSERT INTO batch (a, s) VALUES (1, 'row 5') ON DUPLICATE KEY UPDATE a = a + 1000"))[0].info, (await c.query("REPLACE INTO batch (id, a, s) VALUES (1, 2, 'row 7')"))[0].affectedRows);
  let streamed = 0;
  for await (const row of c.connection.query("SELECT * FROM batch ORDER BY id").stream()) streamed += row.id % 7;
  console.log("streamed", streamed);
  const [several] = await c.query("UPDATE batch SET a = 5 WHERE a = 6; SELECT COUNT(*) AS n FROM batch WHERE a = 5; DELETE FROM batch WHERE a = 5");
  console.log("several", several[0].info, several[1][0].n, several[2].affectedRows);
  const [, fields] = await c.query("SELECT id, a, s FROM batch LIMIT 1");
  console.log("fields", fields.map((f) => [f.name, f.columnType, f.flags].join(":")).join());
}

async function transactions(c) {
  const other = await mysql.createConnection(settings);
  await c.query("CREATE TABLE accounts (id INT PRIMARY KEY, v INT)");
  await c.query("INSERT INTO accounts VALUES (1, 0), (2, 0)");
  for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
    await c.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`);
    await c.beginTransaction();
    const [[before]] = await c.query("SELECT v FROM accounts WHERE id = 1");
    await other.query("SET innodb_lock_wait_timeout = 1");
    const changed = await attempt(other.query("UPDATE accounts SET v = v + 1 WHERE id = 1"));
    const [[after]] = await c.query("SELECT v FROM accounts WHERE id = 1");
    await c.commit();
    console.log(level, changed, after.v - before.v);
  }
  await c.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  await c.query("BEGIN; UPDATE accounts SET v = 50 WHERE id = 1; SAVEPOINT s; UPDATE accounts SET v = 60 WHERE id = 1; ROLLBACK TO s; COMMIT");
  console.log("savepoint", (await c.query("SELECT v FROM accounts WHERE id = 1"))[0][0].v);
  await c.query("START TRANSACTION READ ONLY");
  console.log("read only", await attempt(c.query("UPDATE accounts SET v = 1")));
  await c.rollback();
  await c.query("BEGIN; UPDATE accounts SET v = v WHERE id = 1");
  await other.query("BEGIN; UPDATE accounts SET v = v WHERE id = 2");
  const waits = attempt(other.query("SET innodb_lock_wait_timeout = 20; UPDATE accounts SET v = 3 WHERE id = 1"));
  while ((await c.query("SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE accounts SET v = 3%' AND TIME_MS > 50"))[0][0].n === 0);
  console.log("deadlock", await attempt(c.query("UPDATE accounts SET v = 4 WHERE id = 2")), await waits);
  await other.rollback();
  await c.query("BEGIN; SELECT * FROM accounts WHERE id = 1 FOR UPDATE");
  console.log("nowait", await attempt(other.query("SELECT * FROM accounts WHERE id = 1 FOR UPDATE NOWAIT")), (await other.query("SELECT id FROM accounts FOR UPDATE SKIP LOCKED"))[0].map((r) => r.id).join());
  await c.rollback();
  const clients = await Promise.all([...Array(10)].map(() => mysql.createConnection(settings)));
  await Promise.all(clients.map(async (client) => { for (let i = 0; i < 20; i++) await client.query("UPDATE accounts SET v = v + 1 WHERE id = 2"); }));
  console.log("increments", (await c.query("SELECT v FROM accounts WHERE id = 2"))[0][0].v);
  await Promise.all(clients.map((client) => client.end()));
  const slow = attempt(other.query("SELECT SLEEP(100), COUNT(*) FROM batch"));
  while ((await c.query("SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(100)%'"))[0][0].n === 0);
  await c.query(`KILL ${other.threadId}`);
  console.log("killed", (await slow).split(" ")[0]);
}

(async () => {
  const c = await mysql.createConnection(settings);
  await types(c);
  await batches(c);
  await transactions(c);
  await c.end();
})().catch((error) => { console.log("ended with", error.message); process.exit(1); });
