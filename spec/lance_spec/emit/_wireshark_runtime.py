"""The part of the Wireshark dissector that does not depend on the grammar."""

from typing import Final

RUNTIME: Final = """\
local lwp = Proto("lwp", "Lance Wire Protocol")

local BASES = {dec = base.DEC, hex = base.HEX}
local KINDS = {
    [1] = ProtoField.uint8,
    [2] = ProtoField.uint16,
    [4] = ProtoField.uint32,
    [8] = ProtoField.uint64,
}

local function proto_field(message, field)
    local id = "lwp." .. message .. "." .. field.name
    if field.kind == "bytes" then
        return ProtoField.bytes(id, field.name, base.SPACE, field.doc)
    end
    return KINDS[field.size](id, field.name, BASES[field.base], field.names, nil, field.doc)
end

for message, fields in pairs(MESSAGES) do
    for _, field in ipairs(fields) do
        field.proto = proto_field(message, field)
        lwp.fields[message .. "_" .. field.name] = field.proto
    end
end

local bad_value = ProtoExpert.new(
    "lwp.bad_value", "Value that must not be", expert.group.PROTOCOL, expert.severity.ERROR)
local bad_checksum = ProtoExpert.new(
    "lwp.bad_checksum", "Wrong checksum", expert.group.CHECKSUM, expert.severity.ERROR)
local cut_short = ProtoExpert.new(
    "lwp.cut_short", "Ends inside a field", expert.group.MALFORMED, expert.severity.ERROR)
local trailing = ProtoExpert.new(
    "lwp.trailing", "Bytes after the message", expert.group.MALFORMED, expert.severity.WARN)
lwp.experts = {bad_value, bad_checksum, cut_short, trailing}

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

local function number(range)
    if range:len() == 8 then return range:le_uint64():tonumber() end
    return range:le_uint()
end

local function length_of(field, values, left)
    if field.size then return field.size end
    if field.length then return values[field.length] end
    if field.from then return values[field.upto] - values[field.from] end
    return left
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
            if field.kind ~= "bytes" then values[field.name] = number(range) end
            if field.const and range:bytes():tohex() ~= field.const then
                item:add_proto_expert_info(bad_value, field.name .. " must be " .. field.const)
            end
        end
        place = place + length
    end
    return values, place, items
end

local function add_records(tvb, tree)
    local place, index = 0, 0
    while place < tvb:len() do
        local rest = tvb(place):tvb()
        local branch = tree:add(lwp, rest(), "Record " .. index)
        local values, size = add_message("record", rest, branch)
        local inside = RECORD_VALUES[values.type]
        if inside and values.length and size == 5 + values.length and values.length > 0 then
            add_message(inside, rest(5, values.length):tvb(), branch)
        end
        place, index = place + size, index + 1
    end
end

local function add_command(command, tvb, tree)
    local name = PAYLOADS[command]
    if not name then
        tree:add(lwp, tvb(), "Payload of command " .. command)
        return
    end
    local branch = tree:add(lwp, tvb(), name)
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

local function check_payload(tvb, values, items)
    local length = values.payload_length
    if length == 0 then return end
    if length > MOST_CHECKED then
        items.payload_crc:append_text(" (not checked: more than " .. MOST_CHECKED .. " bytes)")
    elseif not matching(tvb(44, length), values.payload_crc) then
        items.payload_crc:add_proto_expert_info(bad_checksum, "Neither CRC32C nor IEEE CRC-32")
    end
end

local function check_header(tvb, values, items)
    local found = matching(tvb(0, 8), values.header_crc)
    if found then
        items.header_crc:append_text(" (" .. found .. ")")
    else
        items.header_crc:add_proto_expert_info(bad_checksum, "Neither CRC32C nor IEEE CRC-32")
    end
end

local function dissect_frame(tvb, pinfo, tree)
    pinfo.cols.protocol = "LWP"
    local branch = tree:add(lwp, tvb(), "Lance Wire Protocol")
    local values, _, items = add_message("header", tvb(0, 44):tvb(), branch)
    check_header(tvb, values, items)
    check_payload(tvb, values, items)
    local kind = kind_of(values.flags)
    pinfo.cols.info = kind and kind.name or "No kind"
    if kind and kind.payload == "command" then
        local command = COMMANDS[values.batch_id] or "unknown command"
        items.batch_id:append_text(" (" .. command .. ")")
        pinfo.cols.info = command
    end
    if values.payload_length == 0 then return tvb:len() end
    local payload = tvb(44, values.payload_length):tvb()
    if kind and kind.payload == "command" then
        add_command(values.batch_id, payload, branch)
    elseif bit.band(values.flags, COMPRESSED) ~= 0 then
        branch:add(lwp, payload(), "Compressed records")
    else
        add_records(payload, branch)
    end
    return tvb:len()
end

local function frame_length(tvb, _, offset)
    return 44 + tvb(offset + 32, 4):le_uint()
end

function lwp.dissector(tvb, pinfo, tree)
    if tvb:len() >= 4 and tvb(0, 4):string() ~= "LANC" then return 0 end
    dissect_tcp_pdus(tvb, tree, 44, frame_length, dissect_frame, true)
    return tvb:len()
end

DissectorTable.get("tcp.port"):add(PORT, lwp)
"""
"""Everything below the tables; it reads ``MESSAGES``, ``PAYLOADS`` and their like."""
