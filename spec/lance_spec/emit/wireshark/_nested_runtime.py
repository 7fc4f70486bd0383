"""The parts of the Wireshark dissectors of nested messages that do not depend on the grammar."""

from typing import Final

CORE: Final = """\
local PROTO = Proto(PREFIX, TITLE)

local function named(maker)
    return function(id, field)
        return maker(id, field.name, base.DEC, field.names, nil, field.doc)
    end
end

local MAKERS = {
    text = function(id, field)
        return ProtoField.string(id, field.name, base.UNICODE, field.doc)
    end,
    bytes = function(id, field)
        return ProtoField.bytes(id, field.name, base.SPACE, field.doc)
    end,
    uint8 = named(ProtoField.uint8),
    uint16 = named(ProtoField.uint16),
    uint32 = named(ProtoField.uint32),
    uint64 = function(id, field)
        return ProtoField.uint64(id, field.name, base.DEC, nil, nil, field.doc)
    end,
    int8 = named(ProtoField.int8),
    int16 = named(ProtoField.int16),
    int32 = named(ProtoField.int32),
    int64 = function(id, field)
        return ProtoField.int64(id, field.name, base.DEC, nil, nil, field.doc)
    end,
}

for message, declared in pairs(MESSAGES) do
    for _, field in ipairs(declared.fields) do
        if MAKERS[field.leaf] then
            field.proto = MAKERS[field.leaf](PREFIX .. "." .. message .. "." .. field.name, field)
            PROTO.fields[message .. "_" .. field.name] = field.proto
        end
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

-- What stops the reading of a message: where it stood, and why.
local function stop(cursor, why, expert_info)
    error({
        field = cursor.message .. "." .. cursor.field,
        why = why,
        expert_info = expert_info or bad_value,
        tree = cursor.tree,
    }, 0)
end

local function left(cursor) return cursor.stop - cursor.place end

local function carve(cursor, size)
    if size < 0 then stop(cursor, "a length of " .. size) end
    if size > left(cursor) then
        stop(cursor, "needs " .. size .. " bytes, " .. left(cursor) .. " left", cut_short)
    end
    cursor.place = cursor.place + size
    return cursor.place - size
end

-- Numbers of 64 bits are objects, which Lua's own arithmetic would round.
local function plain(value)
    return type(value) == "number" and value or value:tonumber()
end

local function read_number(shape, cursor)
    local range = cursor.tvb(carve(cursor, shape.size), shape.size)
    if shape.size == 8 then
        if shape.signed then return shape.little and range:le_int64() or range:int64() end
        return shape.little and range:le_uint64() or range:uint64()
    end
    if shape.signed then return shape.little and range:le_int() or range:int() end
    return shape.little and range:le_uint() or range:uint()
end

local SEVEN_BITS = 0x7F

local function read_varint(shape, cursor)
    local value = UInt64.new(0)
    for group = 0, 9 do
        local byte = cursor.tvb(carve(cursor, 1), 1):uint()
        if group == 9 and byte > 1 and byte < 0x80 then stop(cursor, "more than 64 bits") end
        value = value:bor(UInt64.new(bit.band(byte, SEVEN_BITS)):lshift(7 * group))
        if byte < 0x80 then
            if not shape.zigzag then return value end
            local half = value:rshift(1)
            if value:band(1):tonumber() == 1 then half = half:bxor(UInt64.max()) end
            return Int64.new(half:lower(), half:higher())
        end
    end
    stop(cursor, "more than 10 bytes")
end

local function read_prefix(shape, cursor)
    return plain((shape.kind == "number" and read_number or read_varint)(shape, cursor))
end

-- How many bytes follow the first of a character in UTF-8, and the limits of the second.
local function follows(first)
    if first < 0x80 then return 0, 0, 0 end
    if first < 0xC2 or first > 0xF4 then return nil end
    if first < 0xE0 then return 1, 0x80, 0xBF end
    if first < 0xF0 then
        return 2, first == 0xE0 and 0xA0 or 0x80, first == 0xED and 0x9F or 0xBF
    end
    return 3, first == 0xF0 and 0x90 or 0x80, first == 0xF4 and 0x8F or 0xBF
end

local function is_utf8(bytes)
    local place, size = 0, bytes:len()
    while place < size do
        local more, low, high = follows(bytes:get_index(place))
        if not more or place + more >= size then return false end
        for step = 1, more do
            local byte = bytes:get_index(place + step)
            if byte < low or byte > high then return false end
            low, high = 0x80, 0xBF
        end
        place = place + more + 1
    end
    return true
end

local TABLE = nil

local function crc32c(bytes)
    if not TABLE then
        TABLE = {}
        for byte = 0, 255 do
            local register = byte
            for _ = 1, 8 do
                local odd = bit.band(register, 1) == 1
                register = bit.rshift(register, 1)
                if odd then register = bit.bxor(register, 0x82F63B78) end
            end
            TABLE[byte] = register
        end
    end
    local register = 0xFFFFFFFF
    for place = 0, bytes:len() - 1 do
        local low = bit.band(bit.bxor(register, bytes:get_index(place)), 0xFF)
        register = bit.bxor(bit.rshift(register, 8), TABLE[low])
    end
    return bit.bxor(register, 0xFFFFFFFF) % 0x100000000
end

local READERS = {}

-- Read a value where the cursor stands; show it in the tree unless its parts show themselves.
local function read(shape, cursor, field)
    return READERS[shape.kind](shape, cursor, field)
end

local function show(cursor, field, start, value)
    local range = cursor.tvb(start, cursor.place - start)
    if value == nil then return cursor.tree:add(field.proto, range) end
    return cursor.tree:add(field.proto, range, value)
end

local function check(cursor, field, value)
    local text = tostring(value)
    if field.const and plain(value) ~= field.const then
        stop(cursor, "must be " .. field.const .. ", is " .. text)
    end
    if field.low and (plain(value) < field.low or plain(value) > field.high) then
        stop(cursor, "must be " .. field.low .. " to " .. field.high .. ", is " .. text)
    end
    if field.closed and not field.names[plain(value)] then
        stop(cursor, "has no rule for " .. text)
    end
end

local function show_number(cursor, field, start, value)
    local item = show(cursor, field, start, value)
    check(cursor, field, value)
    return value, item
end

function READERS.number(shape, cursor, field)
    local start = cursor.place
    return show_number(cursor, field, start, read_number(shape, cursor))
end

function READERS.varint(shape, cursor, field)
    local start = cursor.place
    return show_number(cursor, field, start, read_varint(shape, cursor))
end

local function read_bytes(cursor, field, start, size)
    local from = carve(cursor, size)
    show(cursor, field, start, nil)
    if type(field.const) == "string" then
        local found = cursor.tvb(from, size):bytes():tohex(true)
        if found ~= field.const then stop(cursor, "must be " .. field.const) end
    end
    return size
end

function READERS.raw(shape, cursor, field)
    return read_bytes(cursor, field, cursor.place, shape.size)
end

function READERS.rest(_, cursor, field)
    return read_bytes(cursor, field, cursor.place, left(cursor))
end

function READERS.measured(shape, cursor, field)
    local size = plain(cursor.values[shape.field]) - shape.minus
    return read_bytes(cursor, field, cursor.place, size)
end

-- The length that stands before bytes or text, or nil where it says that there are none.
local function read_length(shape, cursor)
    local size = read_prefix(shape.prefix, cursor)
    if shape.nullable and size == -1 then return nil end
    return size
end

function READERS.blob(shape, cursor, field)
    local start, size = cursor.place, read_length(shape, cursor)
    if not size then return nil end
    return read_bytes(cursor, field, start, size)
end

function READERS.text(shape, cursor, field)
    local start, size = cursor.place, read_length(shape, cursor)
    if not size then return nil end
    local from = carve(cursor, size)
    if size == 0 then
        show(cursor, field, start, "")
        return ""
    end
    local range = cursor.tvb(from, size)
    if not is_utf8(range:bytes()) then stop(cursor, "is not UTF-8") end
    show(cursor, field, start, range:string(ENC_UTF_8))
    return range:string(ENC_UTF_8)
end

local function branch(cursor, text, inside)
    local outer, start = cursor.tree, cursor.place
    cursor.tree = outer:add(PROTO, cursor.tvb(start, left(cursor)), text)
    local value = inside(cursor.tree)
    cursor.tree:set_len(cursor.place - start)
    cursor.tree = outer
    return value
end

function READERS.maybe(shape, cursor, field)
    local present = cursor.tvb(carve(cursor, 1), 1):uint()
    if present > 1 then stop(cursor, "must say 0 or 1, says " .. present) end
    if present == 0 then return nil end
    return read(shape.item, cursor, field)
end

local function read_list(shape, cursor, field, count)
    local message, name = cursor.message, cursor.field
    return branch(cursor, name .. ": " .. count .. " values", function()
        local found = {}
        for number = 1, count do
            cursor.message, cursor.field = message, name
            found[number] = read(shape.item, cursor, field) or false
        end
        return found
    end)
end

function READERS.many(shape, cursor, field)
    local count = read_prefix(shape.prefix, cursor)
    if count < 0 or count * shape.least > left(cursor) then
        stop(cursor, count .. " values do not fit into " .. left(cursor) .. " bytes")
    end
    return read_list(shape, cursor, field, count)
end

function READERS.each(shape, cursor, field)
    if cursor.present * shape.least > left(cursor) then
        stop(cursor, cursor.present .. " values do not fit into " .. left(cursor) .. " bytes")
    end
    return read_list(shape, cursor, field, cursor.present)
end

function READERS.filled(shape, cursor, field)
    local message, name, found = cursor.message, cursor.field, {}
    return branch(cursor, name, function()
        while left(cursor) > 0 do
            cursor.message, cursor.field = message, name
            found[#found + 1] = read(shape.item, cursor, field) or false
        end
        return found
    end)
end

function READERS.sized(shape, cursor, field)
    local message, name, outer = cursor.message, cursor.field, cursor.stop
    local size = read_prefix(shape.prefix, cursor)
    local from = carve(cursor, size)
    cursor.place, cursor.stop = from, from + size
    local value = read(shape.item, cursor, field)
    if left(cursor) > 0 then
        cursor.message, cursor.field = message, name
        stop(cursor, left(cursor) .. " bytes after it", trailing)
    end
    cursor.stop = outer
    return value
end

local function check_guard(cursor, name, item, stated, from, upto)
    if crc32c(cursor.tvb(from, upto - from):bytes()) ~= stated then
        item:add_proto_expert_info(bad_checksum, name .. " is not the CRC32C of what it covers")
    end
end

local function carried(field, version)
    return (not field.since or version >= field.since)
        and (not field.until_ or version <= field.until_)
end

local function read_fields(name, cursor)
    local declared, outer, guard = MESSAGES[name], cursor.values, nil
    if declared.since and cursor.version < declared.since then
        stop(cursor, name .. " is of version " .. declared.since .. " and later")
    end
    local values, start = {}, cursor.place
    for _, field in ipairs(declared.fields) do
        if carried(field, cursor.version) then
            cursor.message, cursor.field, cursor.values = name, field.name, values
            local value, item = read(field.shape, cursor, field)
            values[field.name] = value
            if field.guards == "after" then
                guard = {name = field.name, behind = cursor.place, item = item, stated = value}
            elseif field.guards == "before" and cursor.place - field.shape.size > start then
                check_guard(cursor, field.name, item, value, start, cursor.place - field.shape.size)
            end
        end
    end
    cursor.values = outer
    if guard then
        check_guard(cursor, guard.name, guard.item, guard.stated, guard.behind, cursor.place)
    end
    return values
end

function READERS.nested(shape, cursor, _)
    return branch(cursor, shape.message, function() return read_fields(shape.message, cursor) end)
end

function READERS.choice(shape, cursor, field)
    local chosen = shape.cases[plain(cursor.values[shape.tag])]
    if not chosen then return nil end
    return READERS.nested({message = chosen}, cursor, field)
end

-- Read a message that ends where the bytes end; say what is wrong with it.
local function add_message(name, tvb, tree, version)
    local item = tree:add(PROTO, tvb(), name)
    local cursor = {
        tvb = tvb, place = 0, stop = tvb:len(), version = version or NEWEST, rows = 0, present = 0,
        tree = item, message = name, field = "", values = {},
    }
    local whole, result = pcall(read_fields, name, cursor)
    if whole then
        if left(cursor) > 0 then
            item:add_proto_expert_info(trailing, left(cursor) .. " bytes after " .. name)
        end
        return result
    end
    if type(result) ~= "table" then error(result, 0) end
    result.tree:add_proto_expert_info(result.expert_info, result.field .. " " .. result.why)
    return nil
end
"""
"""What reads a message: it knows ``MESSAGES``, ``PREFIX``, ``TITLE`` and ``NEWEST``."""

SINGLE: Final = """\
-- Each message has a dissector of its own name, for captures whose packets are such messages:
-- "Decode As", or the table of user link types, takes it.
for name in pairs(MESSAGES) do
    local proto = Proto(PREFIX .. "." .. name, TITLE .. " " .. name)
    function proto.dissector(tvb, pinfo, tree)
        pinfo.cols.info = name
        add_message(name, tvb, tree)
        return tvb:len()
    end
end
"""
"""What reads one message in a packet, below the readers."""
