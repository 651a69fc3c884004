-- The commands of clients while servers fill themselves from each other: the second part of the script that handover.lua
-- begins, and whose names it uses. Q is a request: its words, its key, whether it is a meta command, and its handles.

local function own(q, careful) -- what is here as the answer to a command that reads, or nil: nothing, or a mark
    if q.meta and not flag(q, "v") then
        local res, found = internal("mg " .. q.key .. " s f c" .. flags(q, "sfcq")), {}
        if not res:hit() then return end -- its line has k and O
        if not res:line() then return res end -- an error
        for word in res:line():gmatch("%S+") do found[word:sub(1, 1)] = word:sub(2) end
        if found.s == SIZE and MARKS[found.f] then return end
        found.b = nil -- k has it
        for letter in ("ZXW"):gmatch(".") do
            if found[letter] then found.won = (found.won or "") .. " " .. letter end
        end
        return meta(q, "HD", found)
    end
    local before = careful and lookup(q)
    if careful and not (before and before.kind == "value") then return end
    local res = q.meta and internal("mg " .. q.key .. flags(q, "q")) or mcp.internal(q.r)
    if not res:hit() then return end
    if res:vlen() ~= #MARK - 2 then return res end
    if not careful then return own(q, true) end -- it has the size of a mark: is one value here before and after?
    local after = lookup(q)
    return after and after.c == before.c and res or nil
end

local function show(q, copy) -- the answer to a command that reads
    if q.meta and not flag(q, "v") then return meta(q, "HD", copy) end
    local answer = "VALUE " .. q.key .. " " .. copy.f .. " " .. copy.s .. (q.cas and " " .. copy.c or "")
    answer = q.meta and meta(q, "VA " .. copy.s, copy, copy.value) or answer .. "\r\n" .. copy.value .. "END\r\n"
    if #answer <= LONGEST_ANSWER then return answer end
    local line = q.meta and "mg " .. q.key .. flags(q, "qNTRE") or (q.cas and "gets " or "get ") .. q.key
    local res = q.rctx:enqueue_and_wait(mcp.request(line .. "\r\n"), q.handles.again[copy.handle])
    return res and res:ok() and res:vlen() == #copy.value - 2 and res or reply(q, "EN")
end

local function read(q)
    q.reads = true
    for _ = 1, TRIES do
        local answer = not q.missed and own(q)
        if answer then return answer end
        local item = find(q)
        if item.kind ~= "value" then return item.copy and show(q, item.copy) or reply(q, "EN") end
    end
    return reply(q, "EN")
end

local function set(q) -- over whatever there is; once more if a tomb came over it
    local over, answer = "", nil
    for try = 1, ROUNDS - 1 do
        q.since = mcp.time_mono_millis()
        local cas = math.tointeger(flag(q, "E") or version())
        if not cas or cas >= OF_TOMB then cas = version() end -- greater ones cannot have a tomb
        local res = internal("ms " .. q.key .. " " .. q.size .. q.b .. over .. q.kept .. " E" .. cas, q.r)
        local done = res:code() == OK
        if answer and not done and not ERRORS[res:code()] then return answer end -- another has written over the tomb
        answer = finish(q, done and reply(q, "HD", q.meta and { c = cas, s = q.size }) or res, cas)
        if not done or q.alone or try == ROUNDS - 1 then return answer end
        if mcp.internal(prepared(q, "mg u c" .. q.b)):line() == "c" .. cas then return answer end -- it is here still
        local item = lookup(q)
        if not item or item.kind ~= "tomb" then return answer end
        over = " C" .. item.c
        if math.tointeger(item.c) > cas + OF_TOMB then q.rctx:sleep(0.02) end -- of a set that is done again already
    end
end

-- Store by what there is: REFUSE(item), which is nil for none, gives the status where nothing is stored. JOIN: to append.
local function put(q, refuse, join)
    return change(q, function(item, cas)
        local there = item.kind == "value" and item or nil
        local status = refuse(there)
        if status then return nil, reply(q, status) end
        local size, words = math.tointeger(q.size), q.kept
        if join and there then
            size, words = size + math.tointeger(there.s), " M" .. join
        elseif join then
            words = " T" .. flag(q, "N")
        elseif q.token and there and q.token ~= there.c then -- older, and allowed to be
            item, words = { c = q.token }, words .. " I"
        end
        return store(q, item, q.r, q.size, words, cas):code(), reply(q, "HD", { c = cas, s = size })
    end)
end

local function touch(q) -- also what reads and touches, or reads and creates
    return change(q, function(item, cas)
        local answer
        if item.kind == "absent" then
            local t = flag(q, "N")
            if not t then return nil, reply(q, q.words[1] == "touch" and "NF" or "EN") end
            local code = store(q, item, "\r\n", 0, " T" .. t, cas):code()
            if code == OK then internal("mg " .. q.key .. q.b .. " R2147483647") end -- nobody else is to win it
            local found = { s = 0, f = 0, c = cas, t = t, l = 0, h = 0, won = " W" }
            return code, flag(q, "v") and meta(q, "VA 0", found, "\r\n") or meta(q, "HD", found)
        elseif q.words[1] ~= "touch" then
            answer = own(q)
        elseif internal("touch " .. q.key .. " " .. q.words[3]):code() == TOUCHED then
            answer = reply(q, "HD")
        end
        local after, t = lookup(q), flag(q, "T")
        if not q.meta then t = q.words[q.words[1] == "touch" and 3 or 2] end
        if not answer or after and after.kind ~= "value" then return NOT_STORED end
        if t and not q.alone then -- marks, too: who finds one with another lifetime puts that right
            send(q, mcp.request("mg " .. q.key .. q.b .. " u T" .. t .. "\r\n"), q.handles.tomb[1])
        end
        return nil, answer
    end)
end

local function delete(q)
    return change(q, function(item, cas)
        local there = item.kind == "value"
        if there and q.token and q.token ~= item.c then return nil, reply(q, "EX") end
        local answer = reply(q, there and "HD" or "NF")
        if there and (flag(q, "I") or flag(q, "x")) then
            return internal("md " .. q.key .. flags(q, "CEqkO") .. " C" .. item.c .. " E" .. cas):code(), answer
        elseif q.alone then
            if not there then return nil, answer end
            return internal("md " .. q.key .. q.b .. " C" .. item.c):code(), answer
        end
        return mark(q, item, "absent", cas), answer
    end)
end

local function add(q) -- to a number, or take from it
    return change(q, function(item, cas)
        local n = flag(q, "N")
        if item.kind == "absent" and not n then return nil, reply(q, "NF") end
        if item.kind == "absent" then
            local j = flag(q, "J") or "0"
            local found = { c = cas, t = n }
            local shown = flag(q, "v") and not q.quiet
            local answer = shown and meta(q, "VA " .. #j, found, j .. "\r\n") or reply(q, "HD", found)
            return store(q, item, j .. "\r\n", #j, " T" .. n, cas):code(), answer
        end
        if q.token and q.token ~= item.c then return nil, reply(q, "EX") end
        local res = internal(q.meta and "ma " .. q.key .. flags(q, "CE") .. " C" .. item.c .. " E" .. cas
            or q.words[1] .. " " .. q.key .. " " .. q.words[3])
        local function value() local now = lookup(q) return now and now.kind == "value" and now end
        local here = value()
        if ERRORS[res:code()] then return not here and NOT_STORED or nil, res end -- not a number, or a mark
        local tries = TRIES
        while res:code() == OK and here and tonumber(here.c) < cas and tries > 0 do
            -- Of memcached's own count: incr knows no E, and ma gives it to a former item. What joins nothing sets it.
            store(q, here, "\r\n", 0, " MA", cas)
            here, tries = value(), tries - 1
        end
        return res:code(), res, here and here.c
    end)
end

local LIFETIMES <const> = 1 << 31 -- there are as many below zero
local LIFETIME <const> = { touch = 3, gat = 2, gats = 2 } -- which word it is

local function wrapped(lifetime) -- of a classic command that stores: memcached reads 64 bits, and keeps 32 of them
    return (math.tointeger(lifetime) + LIFETIMES & 2 * LIFETIMES - 1) - LIFETIMES
end

local MODES <const> = { set = "S", add = "E", replace = "R", append = "A", prepend = "P", cas = "S" }

local function storing(q)
    local name, words = q.words[1], q.words
    local mode = MODES[name] or (flag(q, "M") or "S"):sub(1, 1)
    q.size, q.token = words[q.meta and 3 or 5], q.meta and flag(q, "C") or name == "cas" and words[6] or nil
    q.kept = q.meta and flags(q, "bckqsCEIMNOklLP") or " F" .. words[3] .. " T" .. wrapped(words[4])
    if mode == "A" or mode == "P" then
        return put(q, function(there)
            if there then return q.token and q.token ~= there.c and "EX" end
            return not flag(q, "N") and "NS"
        end, mode)
    elseif mode == "E" then
        return put(q, function(there) return there and "NS" end)
    elseif q.token then
        return put(q, function(there)
            local older = there and flag(q, "I") and tonumber(q.token) < tonumber(there.c)
            return not there and "NF" or q.token ~= there.c and not older and "EX"
        end)
    elseif mode == "R" then
        return put(q, function(there) return not there and "NS" end)
    end
    return set(q)
end

-- Whether memcached refuses a command for its numbers: then nothing happens, here or elsewhere.
local function is_refused(q)
    local name, words = q.words[1], q.words
    if MODES[name] then
        local number, set = words[3]:match("^%d+$"), words[4]:match("^[+-]?%d+$")
        return not (number and math.tointeger(number) and math.tointeger(number) < 1 << 32 and set and math.tointeger(set))
    end
    for _, lifetime in pairs({ flag(q, "T"), flag(q, "N"), words[LIFETIME[name] or 0] }) do
        local number = lifetime:match("^-?%d+$")
        number = number and math.tointeger(number)
        if not number or number < -LIFETIMES or number >= LIFETIMES then return true end
    end
end

local function touches(q) return flag(q, "T") or flag(q, "N") end

local function meta_read(q) return touches(q) and touch(q) or read(q) end

local COMMANDS <const> = {
    get = read, gets = read, mg = meta_read, gat = touch, gats = touch, touch = touch,
    set = storing, add = storing, replace = storing, append = storing, prepend = storing, cas = storing, ms = storing,
    delete = delete, md = delete, incr = add, decr = add, ma = add,
}
local CLASSIC <const> = "([^ ]+)" .. (" *([^ ]*)"):rep(6) -- such a command has seven words at most

local function answer(context, r, missed)
    local key = r:key()
    if #key > 250 then return mcp.internal(r) end -- which says so
    local name = r:raw_line():match("^[^ ]+")
    pcall(r.token, r, 1, name) -- a line may end in \n, and raw_line() omits two characters: \r\n after this
    local line = r:raw_line()
    local words = { line:match(CLASSIC) }
    local q = {
        rctx = context.rctx, handles = context.handles, prepared = context.prepared, alone = context.alone,
        r = r, key = key, b = "", words = words, first = math.huge, missed = missed,
        round = 1, spread = 1, cas = name == "gets" or name == "gats",
    }
    if #name == 2 then
        q.meta, q.words, q.first = true, {}, name == "ms" and 4 or 3
        for word in line:gmatch("[^ ]+") do q.words[#q.words + 1] = word end
        q.b = flag(q, "b") and " b" or ""
        q.quiet = flag(q, "q") and (name == "mg" and "EN" or "HD")
        q.token = flag(q, "C")
    elseif name:sub(1, 1) ~= "g" then -- the last word says it, be it a key
        q.noreply = line:match("([^ ]*) *$") == "noreply"
    end
    if is_refused(q) then return mcp.internal(r) end
    local only_reads = COMMANDS[name] == read or name == "mg" and not touches(q)
    local response = context.closed and not only_reads and fail("this server is about to end") or COMMANDS[name](q)
    return q.noreply and silence() or response -- not even an error
end

local function get(context, r)
    local res = mcp.internal(r)
    local hit = res:hit()
    if hit and res:vlen() ~= #MARK - 2 or not hit and context.alone then return res end -- most are that
    return answer(context, r, not hit)
end

local function attach(config, f, reads) -- a route for all that read, or for all others
    local generator, handles, again = mcp.funcgen_new(), { query = {}, tomb = {}, again = {} }, {}
    local peers = table.move(config.joining, 1, #config.joining, #config.pools + 1, { table.unpack(config.pools) })
    for round = 1, ROUNDS do
        handles.query[round], handles.tomb[round] = {}, {}
        for index, pool in ipairs(config.pools) do
            again[index] = again[index] or generator:new_handle(pool)
            handles.query[round][index] = generator:new_handle(pool)
            handles.again[handles.query[round][index]] = again[index]
        end
        for index, pool in ipairs(reads and {} or peers) do handles.tomb[round][index] = generator:new_handle(pool) end
    end
    generator:ready({ n = "handover", f = function(rctx)
        local context = { rctx = rctx, handles = handles, prepared = {}, closed = config.closed }
        context.alone = #peers == 0 -- then no marks are made
        return function(r) return f(context, r) end
    end })
    for name, command in pairs(COMMANDS) do
        -- Before there was a peers' file: it shows nothing, and most writes are that.
        local needless = name == "set" and config.generation == 0 and not attached
        if (command == read) == reads and not needless then mcp.attach(mcp["CMD_" .. name:upper()], generator) end
    end
end

function mcp_config_routes(config)
    attach(config, get, true)
    attach(config, answer, false)
    attached, counted = attached or config.generation > 0, counted or 0
    if pcall(mcp.stat, 1, config.generation - counted) then counted = config.generation end -- not at the start
end
