-- Sorted sets that scripts often write and rarely read. Changes are collected, and `save` writes them with one command
-- for each set, because a command that is called from Lua costs more than the change itself. The last change of a
-- member counts. A script that reads such a set after it changed it calls `save` first.
local sets = {}
whenUsed(sets, function()
  -- Changed members by the name of the set: the new score of each, or false to remove it.
  local changed = {}

  function sets.put(name, member, score)
    local members = changed[name]
    if not members then
      members = {}
      changed[name] = members
    end
    members[member] = score
  end

  function sets.remove(name, member) sets.put(name, member, false) end

  -- Removals come first. A server that has reached maxmemory checks only the first write of a script: it refuses that
  -- write if it may need memory, and accepts all later ones.
  function sets.save()
    local puts = {}
    for name, members in pairs(changed) do
      local removed, put = {}, {}
      for member, score in pairs(members) do
        if score then
          put[#put + 1] = score
          put[#put + 1] = member
        else removed[#removed + 1] = member end
      end
      batch('ZREM', name, removed)
      puts[name] = put
    end
    for name, put in pairs(puts) do batch('ZADD', name, put) end
    changed = {}
  end
end)
