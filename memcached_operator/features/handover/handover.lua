-- Servers that copy items from each other while the list of servers changes: memcached's proxy, 1.6.45 or later.
--
--   memcached -l proto[proxy]:0.0.0.0:11211,proto[ascii]:0.0.0.0:11210 -o proxy_config=THIS,proxy_arg=FILE
--
-- FILE: empty or missing, and memcached answers alone. Else the generation, a number that grows, and in each further
-- line HOST PORT of a peer: a listener of another server that has no routes. A third word, "joining", says that the peer
-- is told of writes and not queried: it was away, and may have older copies. A line "closed" says that this server is about
-- to end, and writes are refused: all that it has is being copied. FILE is read each second. When all threads
-- have what it says, "stats proxy" has the generation times their number as user_handover_generation.
--
-- A key at a server is nothing, a value or a mark: an item of a fixed size with flags of its own. Marks are never shown,
-- not even by a server that has no peers yet: others may have it as one.
--   placeholder  this server queries its peers; what they have goes over it, by its CAS
--   tomb         a peer has written: peers are queried; only what was written then may stay, which has the tomb's CAS
--   absent       all peers were queried, or the key was deleted: a miss
-- A write acts here, then puts a tomb at each peer, then is answered. So no older copy is anywhere when it has been
-- answered, and a fill that was under way cannot store one: its placeholder is gone. A write that needs the value brings
-- it first, and acts by the CAS of what it has seen. A set acts again if a tomb came over it.
-- A copy keeps flags, lifetime and CAS. The CAS of a write is its time: of copies that differ the greatest counts.
-- A write that a peer takes no tomb of is taken back, and answered by an error: that peer may have an older value, and its
-- clients read it. So while a peer hangs or is cut off, writes fail, until it answers or FILE names it no more.
-- Queries of reads that find nothing are bounded, as each burdens all servers: beyond the bound, a key that is not here is
-- a miss, and no mark of that stays. Tombs are never left out, and what writes by the value always queries.
--
-- handover_commands.lua has the commands of clients; both files are one script.
--
-- What the API is like: a handle works once in a request, so each query has handles of its own. Of an internal result
-- code(), vlen() and line() can be read, and no value. A string as an answer is cut at 1 KiB, and knows no noreply or q.
-- A route can be replaced and not be taken away: without peers, marks are still hidden. Where this file cannot be read
-- at a reload, memcached ends a second later, as its stack has an error in the place of its table of crons.

local MARK <const>, SIZE <const> = "handover mark\r\n", "13" -- no number, so that incr refuses it
local MARKS <const> = { ["4076008192"] = "placeholder", ["4076008193"] = "tomb", ["4076008194"] = "absent" }
local LIFE_S <const>, SURE_MS <const> = 3, 1500 -- memcached counts whole seconds: 3 are more than 2
local MARKED <const> = {} -- by kind: the words that make a mark
for flags, kind in pairs(MARKS) do MARKED[kind] = " F" .. flags .. " T" .. LIFE_S end
local RELATIVE_S <const> = 2592000 -- greater lifetimes are dates
local OF_TOMB <const> = 1 << 62 -- what a tomb's CAS has more than its write's: they are never taken for each other
local ROUNDS <const>, TRIES <const> = 3, 12
local LONGEST_ANSWER <const> = 1024 -- that is a string, with its lines: memcached cuts it there
local LONGEST_EXCHANGED <const> = 200 -- of keys: a request with the former key and another may not exceed 500 bytes
local BUFFERS_KIB <const> = 16384 -- of values on their way; further ones are misses, or refused as out of memory
-- Of queries that found nothing, in each thread: so many at once, and so many more a second. Two thousand take a tenth
-- of the time of a thread with ten servers. A list that changes needs none of them: a question that finds something is free.
local QUERIES <const>, QUERIES_A_SECOND <const> = 10000, 2000
local FILLED <const>, FAILED <const>, UNQUERIED <const> = 2, 3, 4 -- counters; the first has the generation
local OK <const>, TOUCHED <const>, NOT_STORED <const> = mcp.MCMC_CODE_OK, mcp.MCMC_CODE_TOUCHED, mcp.MCMC_CODE_NOT_STORED
local SAYS <const> = { -- answers of classic commands
    HD = "STORED\r\n", NS = "NOT_STORED\r\n", EX = "EXISTS\r\n", NF = "NOT_FOUND\r\n", EN = "END\r\n",
}
local DONE <const> = { delete = "DELETED\r\n", touch = "TOUCHED\r\n" }
local ERRORS <const> = { [mcp.MCMC_CODE_CLIENT_ERROR] = true, [mcp.MCMC_CODE_SERVER_ERROR] = true }

local function peers_file()
    local file = io.open(mcp.start_arg or "", "r")
    local text = file and file:read("a") or ""
    if file then file:close() end
    return text
end

function mcp_config_pools() -- in the thread that configures
    local config, text = { generation = 0, pools = {}, joining = {} }, peers_file()
    mcp.register_cron("peers", { every = 1, func = function()
        if started and peers_file() == text then return end -- what is counted at the start is lost: it is read again
        started = true
        mcp.schedule_config_reload()
    end })
    mcp.backend_flap_backoff_max(1) -- a peer that is back is to be found at once
    for index, name in ipairs({ "generation", "filled", "failed", "unqueried" }) do mcp.add_stat(index, "handover_" .. name) end
    for line in text:gmatch("[^\n]+") do
        local host, port, state = line:match("^(%S+) (%d+) ?(%l*)$")
        if host then
            local name = host .. ":" .. port
            local limits = { connecttimeout = 0.3, readtimeout = 0.3, retrywaittime = 1, failurelimit = 3 }
            limits.label, limits.host, limits.port = name, host, port
            table.insert(state == "joining" and config.joining or config.pools, mcp.pool({ mcp.backend(limits) }))
        else
            config.generation = math.tointeger(line) or config.generation
            config.closed = config.closed or line == "closed"
        end
    end
    mcp.buffer_memory_limit(config.generation > 0 and BUFFERS_KIB or 0) -- without peers' file there is no limit
    return config
end

-- All further in each thread that answers.

local last = 0
local function version() -- a CAS that is greater than those of earlier writes
    last = math.max(last + 1, mcp.time_real_millis() << 20 | math.random(0, 0xfffff))
    return last
end

local function internal(line, value) return mcp.internal(mcp.request(line .. "\r\n", value)) end

-- The request of a FORM, "mg WORDS" or "ms 13 WORDS", for the key of Q and with a CAS of its own. One that is there is
-- changed: a new one costs as much as all the rest of a question, most of it to collect it as garbage.
local function prepared(q, form, cas)
    local request = q.prepared[form]
    if request and #q.key <= LONGEST_EXCHANGED then
        request:token(2, q.key)
    else
        local value = form:sub(1, 2) == "ms" and MARK or nil
        request = mcp.request(form:sub(1, 3) .. q.key .. form:sub(3) .. "\r\n", value)
        if #q.key <= LONGEST_EXCHANGED then q.prepared[form] = request end
    end
    if cas then request:flag_set("E", cas) end
    return request
end

local function flag(q, letter) -- of a meta command: its argument, which may be empty, or nil
    for index = q.first, #q.words do
        if q.words[index]:sub(1, 1) == letter then return q.words[index]:sub(2) end
    end
end

local function flags(q, dropped) -- all others, each with a space before it
    local kept = {}
    for index = q.first, #q.words do
        if not dropped:find(q.words[index]:sub(1, 1), 1, true) then kept[#kept + 1] = " " .. q.words[index] end
    end
    return table.concat(kept)
end

-- What a meta command is answered: what it requests, of FOUND, words by their letters. VALUE has its end of line.
local function meta(q, head, found, value)
    local answer = { head }
    for index = q.first, #q.words do
        local letter = q.words[index]:sub(1, 1)
        if letter == "O" then
            answer[#answer + 1] = q.words[index]
        elseif letter == "k" then
            answer[#answer + 1] = "k" .. q.key .. q.b
        elseif found[letter] then
            answer[#answer + 1] = letter .. found[letter]
        end
    end
    return table.concat(answer, " ") .. (found.won or "") .. "\r\n" .. (value or "")
end

local function silence() return internal("touch this never noreply") end -- an error, whatever is stored, and no answer

local function reply(q, status, found) -- what has no value to show
    if status == q.quiet then return silence() end
    return q.meta and meta(q, status, found or {}) or status == "HD" and DONE[q.words[1]] or SAYS[status]
end

local function lookup(q) -- what this server has
    local res = mcp.internal(prepared(q, "mg u s f c t" .. q.b))
    local s, f, c, t, more = (res:line() or ""):match("^s(%d+) f(%d+) c(%d+) t(%-?%d+)(.*)")
    if more and more:find("W") then internal("md " .. q.key .. q.b .. " I C" .. c .. " E" .. c) end -- a client is to win it
    return s and { s = s, f = f, c = c, t = t, kind = s == SIZE and MARKS[f] or "value" }
end

local function store(q, item, value, size, words, cas) -- over ITEM, which is here, or only where nothing is
    local over = item.c and " C" .. item.c or " ME"
    return internal("ms " .. q.key .. " " .. size .. q.b .. over .. words .. " E" .. cas, value)
end

local function mark(q, item, kind, cas)
    local request = prepared(q, "ms 13" .. (item.c and " C0" or " ME") .. MARKED[kind] .. q.b, cas)
    if item.c then request:flag_set("C", item.c) end
    return mcp.internal(request):code()
end

local function fail(why)
    pcall(mcp.stat, FAILED, 1)
    return "SERVER_ERROR " .. why .. "\r\n"
end

local function send(q, request, handles) -- to all peers at once; then each has answered, or does not
    if #handles == 0 then return end -- all peers are joining
    q.rctx:enqueue(request, handles)
    q.rctx:wait_cond(#handles, mcp.WAIT_ANY)
end

local function answered(q, handle) -- by a peer, or nil
    local res = q.rctx:res_any(handle)
    return res and res:ok() and res or nil
end

local function query(q) -- the newest copy of peers, or nil; it lasts if no other is known that differs
    local handles, newest, differ = q.handles.query[q.round], nil, false
    q.round = q.round + 1
    send(q, prepared(q, "mg u s f c t v" .. q.b), handles)
    for _, handle in ipairs(handles) do
        local res = answered(q, handle)
        local s, f, c, t, more = (res and res:line() or ""):match("^s(%d+) f(%d+) c(%d+) t(%-?%d+)(.*)")
        if s and not (s == SIZE and MARKS[f]) then
            differ = differ or newest and (newest.c ~= c or math.abs(newest.t - t) > 2)
            if not newest or tonumber(c) > tonumber(newest.c) then
                newest = { s = s, f = f, c = c, t = t, l = "0", h = "0", won = more, res = res, handle = handle }
            end
        end
    end
    if newest then
        local raw = newest.res:raw_string()
        newest.value = raw:sub(raw:find("\n", 1, true) + 1) -- with its end of line
        newest.lasts = newest.t ~= "0" and (not differ or q.round > ROUNDS)
    end
    return newest
end

local function fill(q, item, copy) -- store it over a mark; true if it is here now
    local t = math.tointeger(copy.t)
    if t > RELATIVE_S then t = t + mcp.time_real_millis() // 1000 end
    local words = " F" .. copy.f .. (t < 0 and "" or " T" .. t)
    if store(q, item, copy.value, copy.s, words, copy.c):code() ~= OK then return false end
    pcall(mcp.stat, FILLED, 1)
    if copy.won:find("X") then -- stale: the first request here is to renew it
        internal("md " .. q.key .. q.b .. " I C" .. copy.c .. " E" .. copy.c .. (t < 0 and "" or " T" .. t))
    elseif copy.won:find("Z") then -- somebody renews it
        internal("mg " .. q.key .. q.b .. " R2147483647")
    end
    copy.kind = "value"
    return true
end

local queries, counted_at = QUERIES, 0
local function may_query() -- a read of what is not here, or was written elsewhere
    local now = mcp.time_mono_millis()
    queries, counted_at = math.min(QUERIES, queries + (now - counted_at) * QUERIES_A_SECOND / 1000), now
    if queries < 1 then pcall(mcp.stat, UNQUERIED, 1) end
    return queries >= 1
end

local function find(q) -- a value that is here now, or "absent", or a mark that stays, with the .copy of a peer
    local item = not q.missed and lookup(q) or nil
    q.missed = false
    if q.alone then return item and item.kind == "value" and item or { kind = "absent", c = item and item.c } end
    if not item then
        if q.reads and not may_query() then return { kind = "absent" } end
        local cas = version()
        local code = mark(q, {}, "placeholder", cas)
        if code == NOT_STORED then return find(q) end
        item = { kind = "placed", c = code == OK and cas or nil } -- nil: there is no memory for it
    end
    if item.kind == "value" or item.kind == "absent" or q.round > ROUNDS then return item end
    if item.t and math.ult(LIFE_S, math.tointeger(item.t)) then mark(q, item, item.kind, item.c) end -- it was touched
    if q.reads and item.kind ~= "placed" and not may_query() then return { kind = "absent" } end
    local placed = item.kind == "placed" and item.c
    item.copy = query(q)
    if not item.copy then
        if q.reads then queries = queries - 1 end
        local cas, now = version(), not placed and lookup(q)
        if placed and mark(q, item, "absent", cas) ~= OK or now and now.c ~= item.c then return find(q) end -- a write came
        item.kind, item.c = "absent", placed and cas or item.c
    elseif item.copy.lasts and (placed or item.copy.c + OF_TOMB == math.tointeger(item.c)) and fill(q, item, item.copy) then
        return item.copy
    end
    return item
end

local function finish(q, answer, cas) -- after a write: ANSWER when no older copy is anywhere
    if q.alone then return answer end
    while q.spread <= ROUNDS do
        local handles, all = q.handles.tomb[q.spread], true
        q.spread = q.spread + 1
        send(q, prepared(q, "ms 13" .. MARKED.tomb .. q.b, cas + OF_TOMB), handles)
        for _, handle in ipairs(handles) do
            local res = answered(q, handle)
            all = all and res and res:code() == OK
        end
        local now = mcp.time_mono_millis()
        local late = now - q.since > SURE_MS -- marks may have gone meanwhile, and an older copy have come
        if all and not late then return answer end
        local item = lookup(q)
        if item and item.kind == "value" and (tonumber(item.c) < tonumber(cas) or not all and item.c == tostring(cas)) then
            mark(q, item, "absent", version())
        end
        if not all then return fail("a peer did not answer") end
        q.since = now
    end
    return fail("busy")
end

-- Write by what there is: WRITE(item, cas) over a value or a mark gives the code of what it did and the answer; no code
-- where it does nothing; last, the CAS of what is here then if it is not CAS.
local function change(q, write)
    for try = 1, TRIES do
        q.since = mcp.time_mono_millis()
        local item, cas = find(q), version()
        if item.kind == "value" or item.kind == "absent" then
            local code, answer, kept = write(item, cas)
            if not code then return answer end
            if code == OK then return finish(q, answer, kept or cas) end
            if ERRORS[code] then return finish(q, fail("out of memory storing object"), cas) end
        end
        local c, life = item.c, LIFE_S * 100
        repeat -- another was faster, or is writing, and what it wrote may stay here when its tomb is gone
            q.rctx:sleep(0.01)
            item, life = lookup(q), life - 1
        until not item or item.c ~= c or item.kind == "value" or life == 0
    end
    return fail("busy")
end
