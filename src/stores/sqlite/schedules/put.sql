-- statement: writeSchedule
-- All of a schedule, in the place of what it was.
insert into belfry_schedules (id, version, target, app, definition, payload, options, priority, keep, key, key_limit,
  key_when_busy, unstamped, anchor, cursor, remaining, next_at, due_at, line, created_at, updated_at, paused_at, pause_note,
  finished_at, on_finish)
values (:id, :version, :target, :app, :definition, :payload, :options, :priority, :keep, :key, :keyLimit,
  :keyWhenBusy, :unstamped, :anchor, :cursor, :remaining, :nextAt, :dueAt, :line, :createdAt, :updatedAt, :pausedAt,
  :pauseNote, :finishedAt, :onFinish)
on conflict (id) do update set version = excluded.version, target = excluded.target, app = excluded.app,
  definition = excluded.definition, payload = excluded.payload, options = excluded.options, priority = excluded.priority,
  keep = excluded.keep, key = excluded.key, key_limit = excluded.key_limit, key_when_busy = excluded.key_when_busy,
  unstamped = excluded.unstamped, anchor = excluded.anchor, cursor = excluded.cursor, remaining = excluded.remaining,
  next_at = excluded.next_at, due_at = excluded.due_at, line = excluded.line, created_at = excluded.created_at,
  updated_at = excluded.updated_at, paused_at = excluded.paused_at, pause_note = excluded.pause_note,
  finished_at = excluded.finished_at, on_finish = excluded.on_finish;
