-- Sorted sets that scripts write and hardly ever read. Their changes are collected, and `save` writes them by one command a
-- set: a command that is called from Lua costs more than the work in it. The last change of a member counts. A script that
-- reads such a set after it changed it calls `save` first.
local sets = {}
whenUsed(sets, function()
  -- By the set's name: its members, each with its score, or false if it leaves.
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

  -- Removals come first: a server that is full refuses a script's first command if it could take memory, and none after it.
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
