-- What a client of the Insert Benchmark does, for sysbench; insert_benchmark.py has the steps. Written anew after Mark
-- Callaghan's description (smalldatum.blogspot.com, December 2023). Each thread has a table of its own.

local ffi = require("ffi")

sysbench.cmdline.options = {
   mysql_storage_engine = {"Engine of the tables, which are there already", "InnoDB"},
   tables = {"As many as threads", 1},
   table_size = {"Rows that `load` inserts into each", 10000},
   step = {"load, change, range or point", "load"},
   batch = {"Rows of a transaction of `load` and `change`", 50},
}

local REGISTERS, PRODUCTS, CUSTOMERS, PRICES = 1000, 10000, 100000, 50000
local POINTS = 10
local uniform = sysbench.rand.uniform
local connection, name, first, last

function thread_init(thread)
   connection = sysbench.sql.driver():connect()
   name = "purchases" .. thread + 1
   local lowest, highest = connection:query_row("SELECT MIN(transactionid), MAX(transactionid) FROM " .. name)
   first, last = tonumber(lowest) or 1, tonumber(highest) or 0
end

local function insert(count)
   local rows = {}
   for number = 1, count do
      rows[number] = string.format("(%d,NOW(),%d,%d,%d,%d,'%s')", last + number, uniform(1, REGISTERS),
         uniform(1, CUSTOMERS), uniform(1, PRODUCTS), uniform(1, PRICES), sysbench.rand.string("@@@@@@@@@@@@"))
   end
   connection:query("INSERT INTO " .. name .. " VALUES " .. table.concat(rows, ","))
   last = last + count
end

-- As many at the other end as were inserted, so that the table keeps its size.
local function delete(count)
   connection:query(string.format("DELETE FROM %s WHERE transactionid BETWEEN %d AND %d", name, first, first + count - 1))
   first = first + count
end

-- A few entries of a secondary index that has all columns asked for, from anywhere in it; the three take turns.
local RANGES = {
   {"SELECT productid, customerid FROM %s FORCE INDEX (marketsegment) WHERE productid = %d AND customerid >= %d"
       .. " ORDER BY productid, customerid LIMIT 10", PRODUCTS, CUSTOMERS},
   {"SELECT cashregisterid, price, customerid FROM %s FORCE INDEX (registersegment) WHERE cashregisterid = %d"
       .. " AND price >= %d ORDER BY cashregisterid, price, customerid LIMIT 10", REGISTERS, PRICES},
   {"SELECT price, dateandtime, customerid FROM %s FORCE INDEX (pdc) WHERE price >= %d"
       .. " ORDER BY price, dateandtime, customerid LIMIT 10", PRICES, PRICES},
}
local turn = 0

local function range()
   turn = turn % #RANGES + 1
   local statement, first_most, second_most = unpack(RANGES[turn])
   connection:query(string.format(statement, name, uniform(1, first_most), uniform(1, second_most)))
end

local function point()
   local keys = {}
   for number = 1, POINTS do
      keys[number] = uniform(first, last)
   end
   connection:query("SELECT * FROM " .. name .. " WHERE transactionid IN (" .. table.concat(keys, ",") .. ")")
end

local steps = {load = insert, change = insert, range = range, point = point}

function event()
   steps[sysbench.opt.step](sysbench.opt.batch)
end

-- Instead of sysbench's own: a load has an end, and what is timed, between start and stop, is an insert without the
-- delete that follows it.
function thread_run(thread)
   local step = sysbench.opt.step
   while ffi.C.sb_more_events(thread) and not (step == "load" and last >= sysbench.opt.table_size) do
      ffi.C.sb_event_start(thread)
      event()
      ffi.C.sb_event_stop(thread)
      if step == "change" then
         delete(sysbench.opt.batch)
      end
   end
end
