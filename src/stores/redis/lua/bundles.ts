/**
 * Lines of an answer, as many texts as there are stretches of 32. A client reads few texts faster than many, and a server
 * makes small ones faster than a large one: put together as one, the lines of 300 schedules cost it twice as much.
 */
export const BUNDLES = `
local function bundles(lines)
  local texts = {}
  for first = 1, #lines, 32 do
    texts[#texts + 1] = table.concat(lines, '\\n', first, math.min(first + 31, #lines))
  end
  return texts
end`
