// Models, associations, migrations and transactions as an application of Sequelize has them. Prints what came of each
// step, which must not depend on the engine. Usage: node sequelize.js PORT
const { Sequelize, DataTypes, Op, Transaction } = require("sequelize");

const connect = (isolationLevel) =>
  new Sequelize("test", "root", "", { host: "127.0.0.1", port: +process.argv[2], dialect: "mysql", logging: false, pool: { max: 10 }, isolationLevel });
const code = (error) => error.parent?.code ?? error.original?.code ?? error.name;
const attempt = (promise) => promise.then(() => "done", code);

async function models(db) {
  const User = db.define("user", { name: { type: DataTypes.STRING(50), unique: true }, balance: DataTypes.DECIMAL(12, 2), data: DataTypes.JSON, kind: DataTypes.ENUM("a", "b") });
  const Post = db.define("post", { title: DataTypes.STRING, body: DataTypes.TEXT("long"), raw: DataTypes.BLOB("long") }, { paranoid: true });
  const Tag = db.define("tag", { label: { type: DataTypes.STRING, primaryKey: true } });
  const Note = db.define("note", { text: DataTypes.STRING });
  User.hasMany(Post, { onDelete: "CASCADE", foreignKey: { allowNull: false } });
  Post.belongsTo(User);
  Post.belongsToMany(Tag, { through: "post_tags" });
  Tag.belongsToMany(Post, { through: "post_tags" });
  User.hasMany(Note, { onDelete: "SET NULL" });
  Note.belongsTo(User);
  Note.belongsTo(Note, { as: "parent" });
  await db.sync({ force: true });
  return { User, Post, Tag, Note };
}

async function rows({ User, Post, Tag, Note }) {
  const users = await User.bulkCreate([...Array(50).keys()].map((i) => ({ name: `user ${i}`, balance: "10.50", data: { i, deep: ["ä", "😀"] }, kind: i % 2 ? "a" : "b" })));
  console.log("ids", users[0].id, users[49].id);
  const tags = await Tag.bulkCreate([{ label: "x" }, { label: "y" }]);
  for (const user of users.slice(0, 10)) {
    const post = await Post.create({ title: "t", body: "b".repeat(100000), raw: Buffer.alloc(300000, 7), userId: user.id });
    await post.addTags(tags);
    await Note.create({ text: "n", userId: user.id });
  }
  console.log("joined", (await User.findAll({ include: [{ model: Post, include: Tag }], where: { name: { [Op.like]: "user 1%" } }, order: ["id"] })).map((u) => u.posts.length + (u.posts[0]?.tags.length ?? 0)).join());
  console.log("json", JSON.stringify((await User.findByPk(3)).data), (await Post.findByPk(1)).raw.length);
  console.log("upsert", await attempt(User.bulkCreate([{ name: "user 1", balance: 1 }, { name: "new", balance: 2 }], { updateOnDuplicate: ["balance"] })), await User.count());
  console.log("duplicate", await attempt(User.create({ name: "user 2" })));
  console.log("no parent", await attempt(Post.create({ title: "orphan", userId: 9999 })));
  console.log("cascade", await User.destroy({ where: { id: [1, 2] } }), await Post.count({ paranoid: false }), await Note.count({ where: { userId: null } }));
  await Post.destroy({ where: { id: 5 } });
  console.log("paranoid", await Post.count(), await Post.count({ paranoid: false }), await attempt(Post.restore({ where: { id: 5 } })), await Post.count());
  const { count, rows: page } = await User.findAndCountAll({ limit: 5, offset: 10, order: [["name", "DESC"]] });
  console.log("page", count, page.map((user) => user.name).join());
  console.log("sum", await User.sum("balance"), (await User.findAll({ attributes: ["kind", [Sequelize.fn("COUNT", "*"), "n"]], group: "kind", raw: true, order: ["kind"] })).map((r) => `${r.kind}${r.n}`).join());
}

async function migrations(db) {
  const q = db.getQueryInterface();
  await q.createTable("m", { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, a: DataTypes.STRING(20) });
  await q.bulkInsert("m", [{ a: "1" }, { a: "2" }]);
  console.log("add column", await attempt(q.addColumn("m", "b", { type: DataTypes.INTEGER, allowNull: false, defaultValue: 7 })));
  console.log("add reference", await attempt(q.addColumn("m", "userId", { type: DataTypes.INTEGER, references: { model: "users", key: "id" }, onDelete: "SET NULL" })));
  console.log("references", JSON.stringify((await q.getForeignKeyReferencesForTable("m")).map((r) => [r.columnName, r.referencedTableName, r.referencedColumnName])));
  console.log("change", await attempt(q.changeColumn("m", "a", { type: DataTypes.STRING(300), allowNull: false })));
  console.log("rename", await attempt(q.renameColumn("m", "a", "c")));
  console.log("index", await attempt(q.addIndex("m", ["c", "b"], { unique: true, name: "cb" })), (await q.showIndex("m")).map((i) => i.name).sort().join());
  console.log("constraint", await attempt(q.addConstraint("m", { fields: ["b"], type: "check", where: { b: { [Op.gt]: 0 } }, name: "positive" })), await attempt(q.bulkInsert("m", [{ c: "3", b: -1 }])));
  console.log("drop reference", await attempt(q.removeColumn("m", "userId")));
  console.log("describe", JSON.stringify(Object.entries(await q.describeTable("m")).map(([name, c]) => [name, c.type, c.allowNull])));
  console.log("rename table", await attempt(q.renameTable("m", "n")), await attempt(q.dropTable("n")));
}

async function transactions(db, { User }) {
  console.log("rollback", await attempt(db.transaction(async (t) => { await User.create({ name: "gone" }, { transaction: t }); throw new Error("no"); })), await User.count({ where: { name: "gone" } }));
  await db.transaction(async (outer) => {
    await User.create({ name: "outer" }, { transaction: outer });
    await db.transaction({ transaction: outer }, async (inner) => { await User.create({ name: "inner" }, { transaction: inner }); throw new Error("no"); }).catch(() => {});
  });
  console.log("savepoint", (await User.findAll({ where: { name: ["outer", "inner"] } })).map((u) => u.name).join());
  const raise = (lock) => db.transaction(async (transaction) => {
    const user = await User.findByPk(10, { transaction, lock });
    user.balance = +user.balance + 1;
    await user.save({ transaction });
  });
  const before = +(await User.findByPk(10)).balance;
  const locked = await Promise.all([...Array(40)].map(() => attempt(raise(Transaction.LOCK.UPDATE))));
  console.log("locked", locked.filter((r) => r === "done").length, +(await User.findByPk(10)).balance - before);
  const plain = await Promise.all([...Array(40)].map(() => attempt(raise(undefined))));
  console.log("not locked", [...new Set(plain)].join());
  await User.increment("balance", { by: 1, where: { id: 11 } });
  const incremented = await Promise.all([...Array(40)].map(() => attempt(User.increment("balance", { by: 1, where: { id: 11 } }))));
  console.log("increments", [...new Set(incremented)].join(), (await User.findByPk(11)).balance);
}

(async () => {
  const db = connect();
  const all = await models(db);
  await rows(all);
  await migrations(db);
  await transactions(db, all);
  for (const level of Object.values(Transaction.ISOLATION_LEVELS)) {
    const other = connect(level);
    console.log(level, await attempt(other.transaction((transaction) => other.query("SELECT COUNT(*) FROM users LOCK IN SHARE MODE", { transaction }))));
    await other.close();
  }
  await db.close();
})().catch((error) => { console.log("ended with", error.name, error.message); process.exit(1); });
