"""Finds the messages of nested families on connections, in Lua."""

from typing import Final

FLUVIO: Final = """\
-- Frames stand after their length in 4 bytes. Published programs set no limit; this display does.
local LARGEST = 104857600

local function frame_length(tvb, _, offset)
    local length = tvb(offset, 4):int()
    if length < 0 or length > LARGEST then return 4 end
    return 4 + length
end

-- What each request was, by packet, and the latest of each connection and correlation id: a
-- response says neither its key nor its version.
local REQUESTS, LATEST = {}, {}

local function set_of(conversation, id) return conversation .. "/" .. id end

local function conversation_of(pinfo, client, server)
    return tostring(client) .. ":" .. pinfo.client_port .. ">" .. tostring(server)
end

local function object_type(tvb)
    local length = tvb:len() >= 2 and tvb(0, 2):int() or 0
    if length <= 0 or tvb:len() < 2 + length then return "" end
    return tvb(2, length):string()
end

local function response_name(api, kind) return api.responses[kind] or api.responses[""] end

-- Where one port takes the requests of both servers, the version tells them apart.
local function server_of(port, key, version)
    if PORTS[port] then return PORTS[port] end
    local shared = APIS.sc[key] and (version >= 15 and version <= 19 or key == 1004)
    return shared and key ~= 18 and "sc" or "spu"
end

local function dissect_body(name, tvb, tree, version)
    if tvb then add_message(name, tvb, tree, version) end
end

local function rest_of(tvb, place)
    return tvb:len() > place and tvb(place):tvb() or nil
end

local function dissect_request(tvb, pinfo, tree)
    local header = add_message("request", tvb, tree, NEWEST)
    if not header then return end
    local api = (APIS[server_of(pinfo.dst_port, header.api_key, header.api_version)] or {})[
        header.api_key]
    if not api then
        pinfo.cols.info:append(" request " .. header.api_key)
        tree:add_proto_expert_info(bad_value, "No rule for api_key " .. header.api_key)
        return
    end
    pinfo.cols.info:append(" " .. api.name .. " v" .. header.api_version)
    local body = rest_of(tvb, tvb:len() - header.body)
    local kind = body and object_type(body) or ""
    local key = set_of(pinfo.dst_port .. ":" .. pinfo.src_port, header.correlation_id)
    LATEST[key] = {api = api, version = header.api_version, kind = kind}
    REQUESTS[pinfo.number .. "/" .. header.correlation_id] = LATEST[key]
    dissect_body(api.request, body, tree, header.api_version)
end

local RESPONSES = {}

local function dissect_response(tvb, pinfo, tree)
    local header = add_message("response", tvb, tree, NEWEST)
    if not header then return end
    local seen = pinfo.number .. "/" .. header.correlation_id
    if not pinfo.visited then
        local key = set_of(pinfo.src_port .. ":" .. pinfo.dst_port, header.correlation_id)
        RESPONSES[seen] = LATEST[key]
    end
    local asked = RESPONSES[seen]
    if not asked then
        pinfo.cols.info:append(" response to a request that was not seen")
        return
    end
    pinfo.cols.info:append(" " .. asked.api.name .. " response")
    local name = response_name(asked.api, asked.kind)
    if name then dissect_body(name, rest_of(tvb, 4), tree, asked.version) end
end

local function dissect_frame(tvb, pinfo, tree)
    pinfo.cols.protocol = "Fluvio"
    local item = tree:add(PROTO, tvb(), TITLE)
    local length = tvb(0, 4):int()
    if length ~= tvb:len() - 4 then
        item:add_proto_expert_info(bad_value, "Frame.length " .. length .. " is none")
        return tvb:len()
    end
    local body = rest_of(tvb, 4)
    if not body then
        item:add_proto_expert_info(cut_short, "Frame.body is empty")
        return tvb:len()
    end
    if pinfo.match_uint == pinfo.dst_port then
        dissect_request(body, pinfo, item)
    else
        dissect_response(body, pinfo, item)
    end
    return tvb:len()
end

function PROTO.dissector(tvb, pinfo, tree)
    pinfo.cols.info = ""
    dissect_tcp_pdus(tvb, tree, 4, frame_length, dissect_frame, true)
    return tvb:len()
end

for port in pairs(PORTS) do DissectorTable.get("tcp.port"):add(port, PROTO) end
"""
"""What reads Fluvio; it knows ``APIS`` by server and key, and ``PORTS``."""

RUSTLOG: Final = """\
local function frame_length(tvb, _, offset)
    local length = tvb(offset, 4):uint()
    if length == 0 or length > LARGEST then return 4 end
    return 4 + length
end

-- A brace or white space opens a message of the JSON dialect (RL-01).
local JSON = {[0x7B] = true, [0x20] = true, [0x09] = true, [0x0A] = true, [0x0D] = true}

local function dissect_frame(tvb, pinfo, tree)
    pinfo.cols.protocol = "RustLog"
    local item = tree:add(PROTO, tvb(), TITLE)
    local length = tvb(0, 4):uint()
    if length ~= tvb:len() - 4 or length == 0 then
        item:add_proto_expert_info(bad_value, "Frame.length must be 1 to " .. LARGEST)
        return tvb:len()
    end
    local body = tvb(4):tvb()
    local tag = body(0, 1):uint()
    local asked = pinfo.match_uint == pinfo.dst_port
    if JSON[tag] then
        pinfo.cols.info:append(asked and " JSON request" or " JSON response")
        Dissector.get("json"):call(body, pinfo, item)
        return tvb:len()
    end
    local name = (asked and REQUESTS or RESPONSES)[tag]
    if not name then
        item:add_proto_expert_info(bad_value, "No message of type " .. tag)
        return tvb:len()
    end
    pinfo.cols.info:append(" " .. name)
    add_message(name, body, item)
    return tvb:len()
end

function PROTO.dissector(tvb, pinfo, tree)
    pinfo.cols.info = ""
    dissect_tcp_pdus(tvb, tree, 4, frame_length, dissect_frame, true)
    return tvb:len()
end

DissectorTable.get("tcp.port"):add(PORT, PROTO)
"""
"""What reads RustLog; it knows ``REQUESTS`` and ``RESPONSES`` by type, ``LARGEST`` and ``PORT``."""

QWP: Final = """\
local function payload_of(flags)
    local gorilla, dictionary = bit.band(flags, 0x04) ~= 0, bit.band(flags, 0x08) ~= 0
    return (dictionary and "" or "local_") .. (gorilla and "gorilla_" or "") .. "payload"
end

local function dissect_message(tvb, pinfo, tree)
    pinfo.cols.info = "QWP message"
    local message = add_message("qwp_message", tvb, tree)
    if not message or message.payload == 0 then return end
    local payload = add_message(payload_of(message.flags), tvb(12):tvb(), tree)
    if payload and #payload.tables ~= message.table_count then
        local text = "QwpMessage.table_count is not " .. #payload.tables .. ", the tables there are"
        tree:add_proto_expert_info(bad_value, text)
    end
end

local ANSWERS = {[0] = "ok_response", [2] = "durable_ack"}

local function dissect_answer(tvb, pinfo, tree)
    local name = ANSWERS[tvb(0, 1):uint()] or "error_response"
    pinfo.cols.info = "QWP " .. name
    add_message(name, tvb, tree)
end

-- What senders send begins with the letters QWP1, what servers answer with a status. On the port
-- of servers the direction decides, so that broken letters are seen for what they are.
local function is_answer(tvb, pinfo)
    if pinfo.src_port == PORT then return true end
    if pinfo.dst_port == PORT then return false end
    return tvb:len() < 4 or tvb(0, 4):string() ~= "QWP1"
end

function PROTO.dissector(tvb, pinfo, tree)
    if tvb:len() == 0 then return 0 end
    pinfo.cols.protocol = "QWP"
    local item = tree:add(PROTO, tvb(), TITLE)
    if is_answer(tvb, pinfo) then
        dissect_answer(tvb, pinfo, item)
    else
        dissect_message(tvb, pinfo, item)
    end
    return tvb:len()
end

DissectorTable.get("ws.port"):add(PORT, PROTO)
"""
"""What reads QWP inside WebSockets; it knows ``PORT``."""
