import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import javax.sql.*;
import javax.transaction.xa.*;

/** A driver of JDBC as applications use it. Prints what came of each step, which must not depend on the engine. */
public class ConnectorJ {
    static String url;

    interface Step { void run() throws Exception; }

    static String attempt(Step step) {
        try {
            step.run();
            return "done";
        } catch (SQLException error) {
            return error.getErrorCode() + " " + error.getSQLState();
        } catch (Exception error) {
            return error.getClass().getSimpleName();
        }
    }

    static Object one(Connection c, String query) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(query)) {
            return r.next() ? r.getObject(1) : null;
        }
    }

    static void batches(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE batch (id INT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(50) UNIQUE, d DECIMAL(20,5), t TIMESTAMP(6) NULL, b LONGBLOB, KEY (a))");
            s.execute("CREATE TABLE child (id INT PRIMARY KEY, parent INT, CONSTRAINT up FOREIGN KEY (parent) REFERENCES batch(id) ON DELETE CASCADE)");
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO batch (a, s, d, t, b) VALUES (?, ?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < 20000; i++) {
                p.setInt(1, i % 100);
                p.setString(2, "row " + i + " \u00e4\ud83d\ude00");
                p.setBigDecimal(3, new BigDecimal("0.5").multiply(BigDecimal.valueOf(i)));
                p.setTimestamp(4, i % 3 == 0 ? null : Timestamp.valueOf("2024-02-29 12:00:00.123456"));
                p.setBytes(5, new byte[] {0, (byte) i, 39});
                p.addBatch();
            }
            System.out.println("batch " + p.executeBatch().length + " " + one(c, "SELECT CONCAT(COUNT(*), ' ', SUM(d), ' ', COUNT(t), ' ', MAX(LENGTH(s))) FROM batch"));
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO batch (s, b) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            p.setString(1, "large");
            p.setBytes(2, new byte[5 << 20]);
            p.executeUpdate();
            try (ResultSet keys = p.getGeneratedKeys()) {
                System.out.println("key " + (keys.next() && keys.getLong(1) > 20000) + " " + one(c, "SELECT LENGTH(b) FROM batch WHERE s = 'large'"));
            }
            p.setString(1, "large");
            System.out.println("duplicate " + attempt(p::executeUpdate));
        }
    }

    static void cursors(Connection c) throws Exception {
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                ResultSet r = s.executeQuery("SELECT id, a, s FROM batch WHERE id < 100 ORDER BY id")) {
            r.absolute(50);
            r.updateInt("a", 7777);
            r.updateRow();
            r.last();
            r.deleteRow();
            r.moveToInsertRow();
            r.updateInt("a", 1);
            r.updateString("s", "by cursor");
            r.insertRow();
        }
        System.out.println("cursor " + one(c, "SELECT CONCAT(COUNT(*), ' ', SUM(a = 7777), ' ', SUM(s = 'by cursor')) FROM batch"));
        c.setAutoCommit(false);
        try (Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
            s.setFetchSize(100);
            long sum = 0;
            try (ResultSet r = s.executeQuery("SELECT a FROM batch ORDER BY id")) {
                while (r.next()) sum += r.getInt(1);
            }
            System.out.println("streamed " + sum);
        }
        c.commit();
    }

    static void transactions(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.executeUpdate("INSERT INTO child VALUES (1, 1)");
            Savepoint savepoint = c.setSavepoint("here");
            s.executeUpdate("INSERT INTO child VALUES (2, 2)");
            c.rollback(savepoint);
            c.commit();
            System.out.println("savepoint " + one(c, "SELECT COUNT(*) FROM child") + " no parent " + attempt(() -> s.executeUpdate("INSERT INTO child VALUES (3, -1)")));
            s.executeUpdate("DELETE FROM batch WHERE id = 1");
            c.commit();
            System.out.println("cascade " + one(c, "SELECT COUNT(*) FROM child"));
            for (int level : new int[] {1, 2, 4, 8}) {
                c.commit();
                c.setTransactionIsolation(level);
                System.out.println("isolation " + level + " " + one(c, "SELECT COUNT(*) FROM batch WHERE a = 5"));
            }
            c.commit();
            c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            c.setReadOnly(true);
            System.out.println("read only " + (attempt(() -> s.executeUpdate("UPDATE batch SET a = 1 WHERE id = 2")).equals("done") ? "written" : "refused"));
            c.rollback();
            c.setReadOnly(false);
            c.setAutoCommit(true);
            s.setQueryTimeout(1);
            System.out.println("cancelled " + attempt(() -> s.executeQuery("SELECT SLEEP(100), b FROM batch")).split(" ")[0]);
        }
    }

    static void metadata(Connection c) throws Exception {
        DatabaseMetaData data = c.getMetaData();
        TreeSet<String> found = new TreeSet<>();
        try (ResultSet r = data.getIndexInfo(c.getCatalog(), null, "batch", false, false)) {
            while (r.next()) found.add("index " + r.getString("INDEX_NAME") + " " + r.getBoolean("NON_UNIQUE") + " " + r.getString("COLUMN_NAME"));
        }
        try (ResultSet r = data.getImportedKeys(c.getCatalog(), null, "child")) {
            while (r.next()) found.add("imported " + r.getString("FK_NAME") + " " + r.getString("PKTABLE_NAME") + " " + r.getShort("DELETE_RULE"));
        }
        try (ResultSet r = data.getExportedKeys(c.getCatalog(), null, "batch")) {
            while (r.next()) found.add("exported " + r.getString("FKTABLE_NAME") + " " + r.getString("FKCOLUMN_NAME"));
        }
        try (ResultSet r = data.getColumns(c.getCatalog(), null, "batch", "%")) {
            while (r.next()) found.add("column " + r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME") + " " + r.getInt("COLUMN_SIZE") + " " + r.getString("IS_AUTOINCREMENT"));
        }
        found.forEach(System.out::println);
    }

    static Xid xid(int number) {
        return new Xid() {
            public int getFormatId() { return 1; }
            public byte[] getGlobalTransactionId() { return new byte[] {'g', (byte) ('0' + number)}; }
            public byte[] getBranchQualifier() { return new byte[] {'b'}; }
        };
    }

    static void xa() throws Exception {
        String driver = url.startsWith("jdbc:mariadb") ? "org.mariadb.jdbc.MariaDbDataSource" : "com.mysql.cj.jdbc.MysqlXADataSource";
        XADataSource source = (XADataSource) Class.forName(driver).getConstructor().newInstance();
        source.getClass().getMethod("setUrl", String.class).invoke(source, url);
        for (int i = 1; i <= 2; i++) {
            XAConnection first = source.getXAConnection();
            first.getXAResource().start(xid(i), XAResource.TMNOFLAGS);
            try (Statement s = first.getConnection().createStatement()) {
                s.executeUpdate("UPDATE batch SET a = " + (90000 + i) + " WHERE id = " + (10 + i));
            }
            first.getXAResource().end(xid(i), XAResource.TMSUCCESS);
            first.getXAResource().prepare(xid(i));
            first.close();
        }
        XAConnection second = source.getXAConnection();
        System.out.println("recovered " + second.getXAResource().recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN).length);
        second.getXAResource().commit(xid(1), false);
        second.getXAResource().rollback(xid(2));
        System.out.println("decided " + one(second.getConnection(), "SELECT GROUP_CONCAT(a) FROM batch WHERE a > 90000"));
        second.close();
    }

    public static void main(String[] arguments) throws Exception {
        url = arguments[0];
        try (Connection c = DriverManager.getConnection(url)) {
            batches(c);
            cursors(c);
            transactions(c);
            metadata(c);
        }
        xa();
    }
}
