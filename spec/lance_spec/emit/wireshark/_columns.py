"""The part of the Wireshark dissectors that reads tables which are sent column by column."""

from typing import Final

COLUMNS: Final = """\
function READERS.nulls(_, cursor, field)
    local start = cursor.place
    local flag = cursor.tvb(carve(cursor, 1), 1):uint()
    cursor.present = cursor.rows
    if flag == 0 then return nil end
    local from = carve(cursor, math.ceil(cursor.rows / 8))
    show(cursor, field, start, nil)
    for row = 0, cursor.rows - 1 do
        local byte = cursor.tvb(from + math.floor(row / 8), 1):uint()
        if bit.band(bit.rshift(byte, row % 8), 1) == 1 then cursor.present = cursor.present - 1 end
    end
    return nil
end

local function read_values(cursor, field, size)
    local start = cursor.place
    carve(cursor, size)
    if size > 0 then show(cursor, field, start, nil) end
    return size
end

function READERS.per_value(shape, cursor, field)
    local size = shape.size
    if size == 0 then size = math.ceil(plain(cursor.values[shape.bits_field]) / 8) end
    return read_values(cursor, field, cursor.present * size)
end

function READERS.bits(_, cursor, field)
    return read_values(cursor, field, math.ceil(cursor.present / 8))
end

function READERS.slices(_, cursor, field)
    local start = cursor.place
    local from = carve(cursor, 4 * (cursor.present + 1))
    local last = 0
    for number = 0, cursor.present do
        local offset = cursor.tvb(from + 4 * number, 4):le_uint()
        if offset < last or (number == 0 and offset ~= 0) then
            stop(cursor, "has offsets that fall or do not begin at 0")
        end
        last = offset
    end
    carve(cursor, last)
    show(cursor, field, start, nil)
    return last
end

function READERS.elements(shape, cursor, field)
    local size = shape.size
    for _, each in ipairs(cursor.values[shape.dims]) do
        if each < 0 then stop(cursor, "has a dimension of " .. each) end
        size = size * each
    end
    return read_values(cursor, field, size)
end

-- Bits of a change, by the number of ones before it.
local WIDTHS = {[0] = 0, 7, 9, 12, 32}

local function bit_at(cursor, place)
    if place >= 8 * cursor.stop then stop(cursor, "ends inside packed times", cut_short) end
    local byte = cursor.tvb(math.floor(place / 8), 1):uint()
    return bit.band(bit.rshift(byte, place % 8), 1)
end

function READERS.times(shape, cursor, field)
    if plain(cursor.values[shape.encoding]) == 0 then
        return read_values(cursor, field, 8 * cursor.present)
    end
    local seeds = 8 * math.min(cursor.present, 2)
    local place = 8 * (cursor.place + seeds)
    for _ = 3, cursor.present do
        local ones = 0
        while ones < 4 and bit_at(cursor, place + ones) == 1 do ones = ones + 1 end
        place = place + math.min(ones + 1, 4) + WIDTHS[ones]
    end
    return read_values(cursor, field, math.ceil(place / 8) - cursor.place)
end

function READERS.sections(shape, cursor, field)
    local outer, rows = cursor.values, plain(cursor.values[shape.rows])
    return branch(cursor, cursor.field, function()
        for _, column in ipairs(outer[shape.of]) do
            cursor.rows, cursor.present = rows, rows
            READERS.nested({message = shape.cases[plain(column[shape.tag])]}, cursor, field)
        end
        return nil
    end)
end
"""
"""What reads tables that are sent column by column, below `CORE`."""
