"""The part of the Wireshark dissector that does not depend on the grammar."""

from typing import Final

CORE: Final = """\
local PROTO = Proto(PREFIX, TITLE)

local BASES = {dec = base.DEC, hex = base.HEX}
local KINDS = {
    [1] = ProtoField.uint8,
    [2] = ProtoField.uint16,
    [4] = ProtoField.uint32,
    [8] = ProtoField.uint64,
}

local function proto_field(message, field)
    local id = PREFIX .. "." .. message .. "." .. field.name
    if field.kind == "bytes" then
        return ProtoField.bytes(id, field.name, base.SPACE, field.doc)
    end
    return KINDS[field.size](id, field.name, BASES[field.base], field.names, nil, field.doc)
end

for message, fields in pairs(MESSAGES) do
    for _, field in ipairs(fields) do
        field.proto = proto_field(message, field)
        PROTO.fields[message .. "_" .. field.name] = field.proto
    end
end

local bad_value = ProtoExpert.new(
    PREFIX .. ".bad_value", "Value that must not be", expert.group.PROTOCOL, expert.severity.ERROR)
local bad_checksum = ProtoExpert.new(
    PREFIX .. ".bad_checksum", "Wrong checksum", expert.group.CHECKSUM, expert.severity.ERROR)
local cut_short = ProtoExpert.new(
    PREFIX .. ".cut_short", "Ends inside a field", expert.group.MALFORMED, expert.severity.ERROR)
local trailing = ProtoExpert.new(
    PREFIX .. ".trailing", "Bytes after the message", expert.group.MALFORMED, expert.severity.WARN)
PROTO.experts = {bad_value, bad_checksum, cut_short, trailing}

local POLYNOMIALS = {crc32c = 0x82F63B78, ieee = 0xEDB88320}

local function checksum(polynomial, bytes)
    local register = 0xFFFFFFFF
    for place = 0, bytes:len() - 1 do
        register = bit.bxor(register, bytes:get_index(place))
        for _ = 1, 8 do
            local odd = bit.band(register, 1) == 1
            register = bit.rshift(register, 1)
            if odd then register = bit.bxor(register, polynomial) end
        end
    end
    return bit.bxor(register, 0xFFFFFFFF) % 0x100000000
end

local function matching(range, stated)
    for name, polynomial in pairs(POLYNOMIALS) do
        if checksum(polynomial, range:bytes()) == stated then return name end
    end
    return nil
end

local function complain(item, text)
    item:add_proto_expert_info(bad_value, text)
end

local function number(range)
    if range:len() == 8 then return range:le_uint64() end
    return range:le_uint()
end

-- Numbers of 64 bits are objects, which Lua's own arithmetic would round.
local function plain(value)
    return type(value) == "number" and value or value:tonumber()
end

local function length_of(field, values, left)
    if field.size then return field.size end
    if field.length then return plain(values[field.length]) end
    if field.from then
        if values[field.upto] < values[field.from] then return -1 end
        return plain(values[field.upto] - values[field.from])
    end
    return left
end

local function check_bounds(field, value, item)
    if field.low and (plain(value) < field.low or plain(value) > field.high) then
        complain(item, field.name .. " must be " .. field.low .. " to " .. field.high)
    end
end

local function check_guard(field, tvb, stated, item)
    local first, last = field.guards[1], field.guards[2]
    if checksum(POLYNOMIALS.crc32c, tvb(first, last - first):bytes()) ~= stated then
        item:add_proto_expert_info(bad_checksum, field.name .. " is not the CRC32C")
    end
end

-- Add the fields of a message to the tree; return their values and where they end.
local function add_message(name, tvb, tree)
    local values, place, items = {}, 0, {}
    for _, field in ipairs(MESSAGES[name]) do
        local length = length_of(field, values, tvb:len() - place)
        if length < 0 or place + length > tvb:len() then
            tree:add_proto_expert_info(cut_short, "Ends inside " .. field.name)
            return values, tvb:len(), items
        end
        if length > 0 then
            local range = tvb(place, length)
            local item = tree:add_le(field.proto, range)
            items[field.name] = item
            if field.kind ~= "bytes" then
                values[field.name] = number(range)
                check_bounds(field, values[field.name], item)
                if field.guards then check_guard(field, tvb, values[field.name], item) end
            end
            if field.const and range:bytes():tohex() ~= field.const then
                complain(item, field.name .. " must be " .. field.const)
            end
        end
        place = place + length
    end
    return values, place, items
end
"""
"""What reads a message: it knows ``MESSAGES``, ``PREFIX`` and ``TITLE``, and defines ``PROTO``."""

FRAMES: Final = """\
local function add_records(tvb, tree)
    local place, index = 0, 0
    while place < tvb:len() do
        local rest = tvb(place):tvb()
        local branch = tree:add(PROTO, rest(), "Record " .. index)
        local values, size = add_message("record", rest, branch)
        local inside = RECORD_VALUES[values.type]
        if inside and values.length and size == 5 + values.length and values.length > 0 then
            add_message(inside, rest(5, values.length):tvb(), branch)
        end
        place, index = place + size, index + 1
    end
    return index
end

-- Messages of groups nest; another script reads them, where it is loaded.
local function add_group_command(command, tvb, pinfo, tree)
    local found, dissector = pcall(Dissector.get, "lance_groups." .. GROUP_PAYLOADS[command])
    if not found or not dissector then
        tree:add(PROTO, tvb(), "Load lance_groups.lua to see the payload of " .. COMMANDS[command])
        return
    end
    dissector:call(tvb, pinfo, tree)
    pinfo.cols.info = COMMANDS[command]
end

local function add_command(command, tvb, pinfo, tree)
    local name = PAYLOADS[command]
    if GROUP_PAYLOADS[command] then
        add_group_command(command, tvb, pinfo, tree)
        return
    end
    if not name then
        tree:add(PROTO, tvb(), "Payload of command " .. command)
        return
    end
    local branch = tree:add(PROTO, tvb(), name)
    local _, size = add_message(name, tvb, branch)
    if size < tvb:len() then
        branch:add_proto_expert_info(trailing, (tvb:len() - size) .. " bytes after the message")
    end
    if name == "fetch_response" and size > 16 then
        add_records(tvb(16):tvb(), branch)
    end
end

local function kind_of(flags)
    for _, kind in ipairs(KIND_FLAGS) do
        if bit.band(flags, kind.flag) ~= 0 then return kind end
    end
    return nil
end

-- Bit by bit in Lua, a checksum of megabytes would stop the display for seconds.
local MOST_CHECKED = 65536

-- The payload's checksum uses the polynomial of the header's; an unknown one proves neither.
local function check_payload(tvb, values, items, dialect)
    local length = values.payload_length
    if length == 0 then return end
    if length > MOST_CHECKED then
        items.payload_crc:append_text(" (not checked: more than " .. MOST_CHECKED .. " bytes)")
        return
    end
    local found = matching(tvb(44, length), values.payload_crc)
    if not found then
        items.payload_crc:add_proto_expert_info(bad_checksum, "Neither CRC32C nor IEEE CRC-32")
    elseif dialect and found ~= dialect then
        items.payload_crc:add_proto_expert_info(bad_checksum, "Not the header's polynomial")
    end
end

local function check_header(tvb, values, items)
    local found = matching(tvb(0, 8), values.header_crc)
    if found then
        items.header_crc:append_text(" (" .. found .. ")")
    else
        items.header_crc:add_proto_expert_info(bad_checksum, "Neither CRC32C nor IEEE CRC-32")
    end
    return found
end

local function count_kinds(flags)
    local count = 0
    for _, kind in ipairs(KIND_FLAGS) do
        if bit.band(flags, kind.flag) ~= 0 then count = count + 1 end
    end
    return count
end

-- What a strict receiver refuses, although the checksums are right (AMB-27, AMB-33).
local function check_strictly(values, items, kind, records)
    if values.reserved ~= 0 then complain(items.reserved, "reserved must be 0") end
    if bit.band(values.flags, RESERVED) ~= 0 then
        complain(items.flags, "flags: bit 7 must be 0")
    elseif bit.band(values.flags, ENCRYPTED) ~= 0 then
        complain(items.flags, "flags: encryption is not defined")
    elseif count_kinds(values.flags) > 1 then
        complain(items.flags, "flags: more than one kind")
    elseif not kind and values.payload_length > 0 then
        complain(items.flags, "flags: a payload of no kind")
    end
    if not kind or kind.payload ~= "records" then return end
    if plain(values.batch_id) == 0 then complain(items.batch_id, "batch_id must not be 0") end
    if records and records ~= values.record_count then
        complain(items.record_count, "record_count: there are " .. records .. " records")
    end
end

-- Add what follows the header; return the number of records, where they can be counted.
local function add_payload(tvb, pinfo, values, branch, kind)
    if kind and kind.payload == "command" then
        add_command(plain(values.batch_id), tvb, pinfo, branch)
    elseif bit.band(values.flags, COMPRESSED) ~= 0 then
        branch:add(PROTO, tvb(), "Compressed records")
    elseif kind then
        return add_records(tvb, branch)
    else
        branch:add(PROTO, tvb(), "Payload of no kind")
    end
    return nil
end

local function dissect_frame(tvb, pinfo, tree)
    pinfo.cols.protocol = "LWP"
    local branch = tree:add(PROTO, tvb(), "Lance Wire Protocol")
    local values, _, items = add_message("header", tvb(0, 44):tvb(), branch)
    local dialect = check_header(tvb, values, items)
    local largest = LARGEST[dialect or "crc32c"]
    if values.payload_length > largest then
        complain(items.payload_length, "payload_length must be at most " .. largest)
    end
    if values.payload_length ~= tvb:len() - 44 then
        pinfo.cols.info = "Not a frame"
        return tvb:len()
    end
    check_payload(tvb, values, items, dialect)
    local kind = kind_of(values.flags)
    pinfo.cols.info = kind and kind.name or "No kind"
    if kind and kind.payload == "command" then
        local command = COMMANDS[plain(values.batch_id)] or "unknown command"
        items.batch_id:append_text(" (" .. command .. ")")
        pinfo.cols.info = command
    end
    local records = nil
    if values.payload_length > 0 then
        local payload = tvb(44, values.payload_length):tvb()
        records = add_payload(payload, pinfo, values, branch, kind)
    end
    if dialect == "crc32c" then check_strictly(values, items, kind, records) end
    return tvb:len()
end

-- A length in a header that is none would swallow the rest of the stream.
local function frame_length(tvb, _, offset)
    local length = tvb(offset + 32, 4):le_uint()
    local dialect = matching(tvb(offset, 8), tvb(offset + 8, 4):le_uint())
    if tvb(offset, 4):string() ~= MAGIC or length > LARGEST[dialect or "crc32c"] then
        return 44
    end
    return 44 + length
end

function PROTO.dissector(tvb, pinfo, tree)
    dissect_tcp_pdus(tvb, tree, 44, frame_length, dissect_frame, true)
    return tvb:len()
end

DissectorTable.get("tcp.port"):add(PORT, PROTO)
"""
"""What reads a TCP stream of frames, below `CORE` and the tables of commands."""

FILES: Final = """\
-- Each message has a dissector of its own name, for captures whose packets are such messages:
-- "Decode As", or the table of user link types, takes it.
local function dissector_of(name)
    return function(tvb, pinfo, tree)
        pinfo.cols.protocol = TITLE
        pinfo.cols.info = name
        local branch = tree:add(PROTO, tvb(), name)
        local _, size = add_message(name, tvb, branch)
        if size < tvb:len() then
            branch:add_proto_expert_info(trailing, (tvb:len() - size) .. " bytes after the message")
        end
        return tvb:len()
    end
end

for name in pairs(MESSAGES) do
    local proto = Proto(PREFIX .. "." .. name, TITLE .. " " .. name)
    proto.dissector = dissector_of(name)
end
"""
"""What reads one message in a packet, below `CORE`, for families without frames."""
