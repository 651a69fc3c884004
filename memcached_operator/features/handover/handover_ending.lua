-- A server that has its items moved before its pod ends: the third part of the script that handover.lua begins.
--
--   memcached -l ...,proto[proxy]:tag[tell]:*:11209
--
-- The kubelet does not write FILE any more once its pod ends. So the operator says what it would have: "mg" of its text as
-- a key, with "," between lines and "/" between words. What has the greater generation counts. "mg done" ends the pod's
-- hook, before_end.sh. All of that only once the hook runs; and on no other listener, where a client could send what it
-- liked to a host of its own. FOLDER is the pod's, of all its containers, and can be written.

local FOLDER <const> = "/dev/shm"

local function contents(name)
    local file = io.open(FOLDER .. "/" .. name, "r")
    local text = file and file:read("a")
    if file then file:close() end
    return text
end

local function write(name, text) -- in one step, as others read it
    local new = FOLDER .. "/" .. name .. ".new"
    local file = io.open(new, "w")
    if not file then return end
    file:write(text)
    file:close()
    os.rename(new, FOLDER .. "/" .. name)
end

local function generation_of(text) return math.tointeger(tonumber(text:match("^%d+"))) or 0 end

local as_written = peers_file
peers_file = function()
    local text, told = as_written(), contents("told") or ""
    return generation_of(told) > generation_of(text) and told or text
end

local function tell(r)
    if not contents("ending") then return "EN\r\n" end
    write("heard", mcp.time_mono_millis() .. "\n")
    local text = r:key()
    if text == "done" then
        write("done", "")
    elseif generation_of(text) > generation_of(contents("told") or "") then
        write("told", (text:gsub(",", "\n"):gsub("/", " ")))
    end
    return "HD\r\n"
end

local routes = mcp_config_routes
function mcp_config_routes(config)
    routes(config)
    local generator = mcp.funcgen_new()
    generator:ready({ n = "tell", f = function() return tell end })
    mcp.attach(mcp.CMD_MG, generator, "tell")
end

write("listens", "") -- also for the hook, which does not wait where there is no proxy
