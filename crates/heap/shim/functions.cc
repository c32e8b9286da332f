/*
  The functions of SQL: teak_heap_start, _stop, _dump, _session, _mark and _leaks.

  Each has an effect, so none is computed once for many rows, kept by the query cache, allowed in generated columns, or
  replicated as a statement. All need SUPER, also where a view or a routine calls them: it is that of whose rights count
  there.
*/
#include "functions.h"
#include "thread_state.h"

#include "item.h"
#include "item_create.h"
#include "item_func.h"
#include "item_strfunc.h"
#include "mysqld.h"
#include "sql_acl.h"
#include <string>

namespace teak {

char* heap_directory;

namespace {

/* What a function of Rust has to say, given back with it. */
class Answer {
  public:
    ~Answer() { teak_buffer_free(own_thread(), buffer.owner); }
    teak_buffer* room() { return &buffer; }
    const char* data() const { return buffer.data; }
    size_t size() const { return buffer.len; }
    std::string text() const { return std::string(buffer.data, buffer.len); }

  private:
    teak_buffer buffer{};
};

teak_bytes bytes_of(const String& text) { return {reinterpret_cast<const uint8_t*>(text.ptr()), text.length()}; }

/* What it calls, with its arguments. True: SQL NULL. */
using Call = teak_status (*)(THD* thd, Item** arguments, uint count, teak_buffer* text, bool* null);

teak_status start(THD*, Item** arguments, uint count, teak_buffer* text, bool*) {
    const longlong bytes = count ? arguments[0]->val_int() : 0;
    const bool is_default = !count || arguments[0]->null_value;
    return teak_heap_start(own_thread(), is_default ? 0 : bytes < 1 ? 1 : static_cast<uint64_t>(bytes), text);
}

teak_status stop(THD*, Item**, uint, teak_buffer* text, bool*) { return teak_heap_stop(own_thread(), text); }

teak_status session(THD* thd, Item** arguments, uint, teak_buffer* text, bool* null) {
    const bool on = arguments[0]->val_int() != 0;
    if ((*null = arguments[0]->null_value)) return TEAK_OK;
    return on ? teak_heap_follow(own_thread(), thd->thread_id, text)
              : teak_heap_leave(own_thread(), thd->thread_id, text);
}

teak_status mark(THD* thd, Item** arguments, uint, teak_buffer* text, bool* null) {
    StringBuffer<STRING_BUFFER_USUAL_SIZE> room;
    const String* name = arguments[0]->val_str(&room);
    if ((*null = !name)) return TEAK_OK;
    return teak_heap_mark(own_thread(), thd->thread_id, bytes_of(*name), text);
}

teak_status leaks(THD* thd, Item** arguments, uint, teak_buffer* text, bool* null) {
    StringBuffer<STRING_BUFFER_USUAL_SIZE> room;
    const String* name = arguments[0]->val_str(&room);
    if ((*null = !name)) return TEAK_OK;
    return teak_heap_leaks(own_thread(), thd->thread_id, bytes_of(*name), text);
}

teak_status dump(THD*, Item** arguments, uint, teak_buffer* text, bool* null) {
    StringBuffer<STRING_BUFFER_USUAL_SIZE> room;
    const String* name = arguments[0]->val_str(&room);
    if ((*null = !name)) return TEAK_OK;
    const char* directory = heap_directory && *heap_directory ? heap_directory : mysql_real_data_home;
    return teak_heap_dump(own_thread(), {reinterpret_cast<const uint8_t*>(directory), strlen(directory)},
                          bytes_of(*name), text);
}

struct Function {
    LEX_CSTRING name;
    Call call;
    uint least, most; /* arguments */
};

const Function kStart = {{STRING_WITH_LEN("teak_heap_start")}, start, 0, 1};
const Function kStop = {{STRING_WITH_LEN("teak_heap_stop")}, stop, 0, 0};
const Function kDump = {{STRING_WITH_LEN("teak_heap_dump")}, dump, 1, 1};
const Function kSession = {{STRING_WITH_LEN("teak_heap_session")}, session, 1, 1};
const Function kMark = {{STRING_WITH_LEN("teak_heap_mark")}, mark, 1, 1};
const Function kLeaks = {{STRING_WITH_LEN("teak_heap_leaks")}, leaks, 1, 1};

/* Calls it, on who asks; the text, or false with an error or NULL. */
bool carry_out(const Function& function, THD* thd, Item** arguments, uint count, Answer* answer, bool* null) {
    *null = false;
    const teak_status status = function.call(thd, arguments, count, answer->room(), null);
    if (status != TEAK_OK) {
        /* %s cuts at 512 bytes; what helps is within these. */
        if (!thd->is_error())
            my_printf_error(ER_UNKNOWN_ERROR, "%s: %s", MYF(0), function.name.str, answer->text().c_str());
        *null = true;
    }
    return !*null;
}

bool is_refused(THD* thd) { return check_global_access(thd, SUPER_ACL); }

/* One whose value is a number: Base is Item_longlong_func, or a text: Item_str_func. */
template <const Function& function, typename Base> class Effect : public Base {
  public:
    using Base::Base;
    LEX_CSTRING func_name_cstring() const override { return function.name; }
    bool const_item() const override { return false; }
    table_map used_tables() const override { return this->used_tables_cache | RAND_TABLE_BIT; }
    bool is_expensive() override { return true; }
    bool check_vcol_func_processor(void* arg) override {
        return mark_unsupported_function(function.name.str, "()", arg, VCOL_IMPOSSIBLE);
    }
};

template <const Function& function> class Number : public Effect<function, Item_longlong_func> {
  public:
    using Effect<function, Item_longlong_func>::Effect;
    bool fix_length_and_dec(THD* thd) override {
        this->fix_char_length(20);
        this->set_maybe_null();
        return is_refused(thd);
    }
    longlong val_int() override {
        Answer answer;
        if (!carry_out(function, current_thd, this->args, this->arg_count, &answer, &this->null_value)) return 0;
        return strtoll(answer.text().c_str(), nullptr, 10);
    }

  protected:
    Item* shallow_copy(THD* thd) const override { return get_item_copy<Number>(thd, this); }
};

template <const Function& function> class Text : public Effect<function, Item_str_func> {
  public:
    using Effect<function, Item_str_func>::Effect;
    bool fix_length_and_dec(THD* thd) override {
        this->collation.set(&my_charset_utf8mb4_bin, DERIVATION_COERCIBLE);
        this->max_length = MAX_BLOB_WIDTH;
        this->set_maybe_null();
        return is_refused(thd);
    }
    String* val_str(String* room) override {
        Answer answer;
        if (!carry_out(function, current_thd, this->args, this->arg_count, &answer, &this->null_value)) return nullptr;
        if ((this->null_value = room->copy(answer.data(), answer.size(), &my_charset_utf8mb4_bin))) return nullptr;
        return room;
    }

  protected:
    Item* shallow_copy(THD* thd) const override { return get_item_copy<Text>(thd, this); }
};

template <const Function& function, template <const Function&> class Kind> class Builder : public Create_native_func {
  public:
    Item* create_native(THD* thd, const LEX_CSTRING* name, List<Item>* arguments) override {
        const uint count = arguments ? arguments->elements : 0;
        if (count < function.least || count > function.most) {
            my_error(ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT, MYF(0), name->str);
            return nullptr;
        }
        thd->lex->set_stmt_unsafe(LEX::BINLOG_STMT_UNSAFE_SYSTEM_FUNCTION);
        thd->lex->uncacheable(UNCACHEABLE_SIDEEFFECT);
        thd->lex->safe_to_cache_query = false;
        return count ? new (thd->mem_root) Kind<function>(thd, *arguments) : new (thd->mem_root) Kind<function>(thd);
    }
};

Builder<kStart, Number> start_builder;
Builder<kStop, Number> stop_builder;
Builder<kDump, Text> dump_builder;
Builder<kSession, Number> session_builder;
Builder<kMark, Number> mark_builder;
Builder<kLeaks, Text> leaks_builder;

} // namespace

Plugin_function start_function(&start_builder), stop_function(&stop_builder), dump_function(&dump_builder),
    session_function(&session_builder), mark_function(&mark_builder), leaks_function(&leaks_builder);

} // namespace teak
