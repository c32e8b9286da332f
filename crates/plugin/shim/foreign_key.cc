#include "foreign_key.h"
#include "server_version.h"
#include "errors.h"
#include "server_contracts.h"
#include "session.h"
#include <algorithm>

namespace teak {
namespace {

constexpr uchar kVersion = 1;
constexpr size_t kHeadBytes = 8;
constexpr const char* kGenerated = "_ibfk_";

const char* rule_text(enum_fk_option rule) {
    switch (rule) {
    case FK_OPTION_CASCADE:
        return "CASCADE";
    case FK_OPTION_SET_NULL:
        return "SET NULL";
    case FK_OPTION_NO_ACTION:
        return "NO ACTION";
    default:
        return nullptr; /* RESTRICT is what holds unless something else is said */
    }
}

std::string quoted_list(THD* thd, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + quoted(thd, {name.data(), name.size()});
    return text;
}

void put_name(std::vector<uchar>* to, const std::string& name) {
    to->push_back(static_cast<uchar>(name.size()));
    to->insert(to->end(), name.begin(), name.end());
}

/* Takes a name off the front. */
bool take_name(teak_bytes* from, std::string* name) {
    if (from->len == 0 || from->data[0] >= from->len) return false;
    const size_t length = from->data[0];
    name->assign(reinterpret_cast<const char*>(from->data) + 1, length);
    *from = {from->data + 1 + length, from->len - 1 - length};
    return true;
}

std::string string_of(teak_bytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.len}; }

/* Gathers links; which of them are malformed is told at the end. */
struct Gathering {
    std::vector<ForeignKey>* keys;
    bool malformed = false;

    static void take(void* context, teak_link link) {
        auto* gathering = static_cast<Gathering*>(context);
        ForeignKey key;
        if (!key.parse(link))
            gathering->malformed = true;
        else
            gathering->keys->push_back(std::move(key));
    }
};

/* By an ALTER, until its copy has the name. */
bool is_set_aside(const std::string& name) { return name.find("#sql-backup") != std::string::npos; }

/* A copying ALTER that gives the table another name drops the old one last: that one's name, if it has constraints. */
std::string table_that_goes(THD* thd, const std::string& to) {
    const std::string name = altered_table(thd);
    if (name.empty()) return "";
    std::vector<ForeignKey> own;
    Gathering gathering{&own};
    const bool is_there =
        name != to && teak_links_of(plugin.engine, bytes_of(name.c_str()), Gathering::take, &gathering) == TEAK_OK;
    return is_there && !own.empty() ? name : "";
}

} // namespace

TableName::TableName(const std::string& core_name) {
    const size_t slash = std::min(core_name.find('/'), core_name.size());
    filename_to_tablename(core_name.substr(0, slash).c_str(), db_, sizeof db_, true);
    const std::string last = slash < core_name.size() ? core_name.substr(slash + 1) : "";
    if (is_passing_name(last))
        strmake(table_, last.c_str(), NAME_LEN); /* is not encoded */
    else
        filename_to_tablename(last.c_str(), table_, sizeof table_, true);
}

std::string TableName::core(const char* db, const char* table) {
    char path[FN_REFLEN + 1];
    const uint length = build_table_filename(path, sizeof path - 1, db, table, "", 0);
    path[length] = 0;
    return string_of(table_name(path));
}

bool is_passing_name(const std::string& core_name) {
    const size_t slash = core_name.rfind('/');
    return core_name.compare(slash == std::string::npos ? 0 : slash + 1, tmp_file_prefix_length, tmp_file_prefix) == 0;
}

std::string quoted(THD* thd, const LEX_CSTRING& name) {
    StringBuffer<2 * NAME_LEN> text(system_charset_info);
    append_identifier(thd, &text, name.str, name.length);
    return {text.ptr(), text.length()};
}

void ForeignKey::set_name(const char* name, const std::string& table) {
    given_name = name;
    number = 0;
    const LEX_CSTRING own = TableName(table).table();
    const std::string front = std::string(own.str, own.length) + kGenerated;
    if (given_name.compare(0, front.size(), front) != 0) return;
    const std::string digits = given_name.substr(front.size());
    const bool plain = !digits.empty() && digits.size() < 10 && digits[0] != '0' &&
                       std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (plain) number = static_cast<uint32_t>(std::stoul(digits));
}

std::string ForeignKey::name() const {
    if (!number) return given_name;
    return TableName(child).table().str + (kGenerated + std::to_string(number));
}

int ForeignKey::check_length() const {
    const std::string called = name();
    if (system_charset_info->numchars(called.data(), called.data() + called.size()) <= NAME_CHAR_LEN) return 0;
    my_error(ER_TOO_LONG_IDENT, MYF(0), called.c_str());
    return HA_ERR_INTERNAL_ERROR;
}

std::string ForeignKey::link_name() const {
    if (is_passing_name(child)) return "";
    const std::string called = name();
    return child.substr(0, child.find('/') + 1) + lower_case(called.data(), std::min<size_t>(called.size(), NAME_LEN));
}

bool ForeignKey::has_name(const char* other) const { return is_same_name(name().c_str(), other); }

bool ForeignKey::cascades(bool deleted) const { return is_carried_out(deleted ? on_delete : on_update); }

bool ForeignKey::parse(const teak_link& link) {
    child = string_of(link.table);
    parent = string_of(link.target);
    teak_bytes rest = link.body;
    if (rest.len < kHeadBytes || rest.data[0] != kVersion) return false;
    on_delete = static_cast<enum_fk_option>(rest.data[1]);
    on_update = static_cast<enum_fk_option>(rest.data[2]);
    if (on_delete > FK_OPTION_SET_NULL || on_update > FK_OPTION_SET_NULL) return false;
    number = uint4korr(rest.data + 3);
    const size_t count = rest.data[7];
    rest = {rest.data + kHeadBytes, rest.len - kHeadBytes};
    if (!take_name(&rest, &given_name)) return false;
    columns.resize(count);
    parent_columns.resize(count);
    for (size_t i = 0; i < count; i++)
        if (!take_name(&rest, &columns[i]) || !take_name(&rest, &parent_columns[i])) return false;
    return count > 0 && rest.len == 0;
}

std::vector<uchar> ForeignKey::body() const {
    std::vector<uchar> bytes(kHeadBytes);
    bytes[0] = kVersion;
    bytes[1] = static_cast<uchar>(on_delete);
    bytes[2] = static_cast<uchar>(on_update);
    int4store(bytes.data() + 3, number);
    bytes[7] = static_cast<uchar>(columns.size());
    put_name(&bytes, given_name);
    for (size_t i = 0; i < columns.size(); i++) {
        put_name(&bytes, columns[i]);
        put_name(&bytes, parent_columns[i]);
    }
    return bytes;
}

std::string ForeignKey::text(THD* thd) const {
    const TableName own(child), other(parent);
    const std::string called = name();
    std::string text = "CONSTRAINT " + quoted(thd, {called.data(), called.size()});
    text += " FOREIGN KEY (" + quoted_list(thd, columns) + ") REFERENCES ";
    if (strcmp(own.db().str, other.db().str) != 0) text += quoted(thd, other.db()) + ".";
    text += quoted(thd, other.table()) + " (" + quoted_list(thd, parent_columns) + ")";
    if (const char* rule = rule_text(on_delete)) text += std::string(" ON DELETE ") + rule;
    if (const char* rule = rule_text(on_update)) text += std::string(" ON UPDATE ") + rule;
    return text;
}

std::string ForeignKey::error_text(THD* thd) const {
    const TableName own(child);
    return quoted(thd, own.db()) + "." + quoted(thd, own.table()) + ", " + text(thd);
}

int load_all(THD* thd, std::vector<ForeignKey>* keys) {
    Gathering gathering{keys};
    const teak_status status = teak_all_links(plugin.engine, Gathering::take, &gathering);
    if (status != TEAK_OK || !gathering.malformed) return end_of_fill(status, thd);
    my_error(ER_GET_ERRMSG, MYF(0), HA_ERR_TABLE_DEF_CHANGED, "a foreign key of the catalog is malformed", "Teak");
    return 1;
}

LinkList::LinkList(const std::vector<ForeignKey>& keys) {
    for (const ForeignKey& key : keys) {
        names_.push_back(key.link_name());
        const std::string& name = names_.back();
        names_.push_back(key.parent);
        const std::string& parent = names_.back();
        bodies_.push_back(key.body());
        const std::vector<uchar>& body = bodies_.back();
        links_.push_back(
            {bytes_of(""), bytes_of(name.c_str()), bytes_of(parent.c_str()), bytes_of(body.data(), body.size())});
    }
}

void Relinks::add(const std::string& table, const std::vector<ForeignKey>& keys) {
    tables_.push_back(table);
    lists_.emplace_back(keys);
    relinks_.push_back({bytes_of(tables_.back().c_str()), lists_.back().all()});
}

void warn_of_duplicate_name(THD* thd, const std::string& table, const ForeignKey& key) {
    const TableName own(table);
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_FOUND_DUPP_KEY,
                        "CREATE or ALTER TABLE %s.%s failed: duplicate name, %s", quoted(thd, own.db()).c_str(),
                        quoted(thd, own.table()).c_str(), key.text(thd).c_str());
}

bool is_name_taken(const ForeignKey& key, const std::string& but_for) {
    uchar taken = 0;
    const std::string name = key.link_name();
    return !name.empty() &&
           teak_link_is_of_other(plugin.engine, bytes_of(name.c_str()), bytes_of(but_for.c_str()), &taken) == TEAK_OK &&
           taken;
}

int rename_with_constraints(THD* thd, const std::string& from, const std::string& to, bool carries) {
    std::vector<ForeignKey> own;
    Gathering gathering{&own};
    teak_status status = teak_links_of(plugin.engine, bytes_of(from.c_str()), Gathering::take, &gathering);
    if (status != TEAK_OK) return error_code(status, thd);
    if (gathering.malformed) return HA_ERR_TABLE_DEF_CHANGED;
    for (ForeignKey& key : own)
        key.child = to;
    const std::string altered = is_passing_name(from) && !is_set_aside(from) ? table_that_goes(thd, to) : "";
    /* A table that had such a name already may come back to it. */
    if (thd && (!is_passing_name(from) || !altered.empty()))
        for (const ForeignKey& key : own)
            if (int error = key.check_length()) return error;
    /* A table that an ALTER has set aside comes back whatever somebody has called a constraint meanwhile. */
    std::vector<std::string> names;
    for (const ForeignKey& key : own)
        names.push_back(is_set_aside(from) && is_name_taken(key, from) ? "" : key.link_name());
    std::vector<teak_bytes> link_names;
    for (const std::string& name : names)
        link_names.push_back(bytes_of(name.c_str()));
    status = teak_table_rename(plugin.engine, bytes_of(from.c_str()), bytes_of(to.c_str()),
                               {link_names.data(), link_names.size()}, carries, bytes_of(altered.c_str()));
    if (status == TEAK_LINK_EXISTS && thd)
        for (const ForeignKey& key : own)
            if (is_name_taken(key, from)) warn_of_duplicate_name(thd, to, key);
    return error_code(status, thd);
}

int ForeignKeys::load(const std::string& core_name, THD* thd) {
    const uint64_t now = teak_link_changes(plugin.engine);
    if (now == changes) return 0;
    own.clear();
    of_others.clear();
    changes = UINT64_MAX;
    const teak_bytes table = bytes_of(core_name.c_str());
    Gathering mine{&own}, theirs{&of_others};
    teak_status status = teak_links_of(plugin.engine, table, Gathering::take, &mine);
    if (status == TEAK_OK || status == TEAK_NO_TABLE)
        status = teak_links_to(plugin.engine, table, Gathering::take, &theirs);
    if (status != TEAK_OK || mine.malformed || theirs.malformed) {
        own.clear();
        of_others.clear();
        return status == TEAK_OK ? HA_ERR_TABLE_DEF_CHANGED : error_code(status, thd);
    }
    of_others.erase(std::remove_if(of_others.begin(), of_others.end(),
                                   [](const ForeignKey& key) { return is_passing_name(key.child); }),
                    of_others.end());
    auto before = [](const ForeignKey& a, const ForeignKey& b) {
        const int order = strcmp(TableName(a.child).db().str, TableName(b.child).db().str);
        return order ? order < 0 : a.name() < b.name();
    };
    std::sort(own.begin(), own.end(), before);
    std::sort(of_others.begin(), of_others.end(), before);
    changes = now;
    return 0;
}

} // namespace teak
