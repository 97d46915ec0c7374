-- statement: writeSchedule
-- Writes all columns of a schedule, new or changed.
insert or replace into belfry_schedules (id, version, target, app, definition, payload, options, priority, keep, key, key_limit,
  key_when_busy, unstamped, anchor, cursor, remaining, next_at, due_at, line, created_at, updated_at, paused_at, pause_note,
  finished_at, on_finish)
values (:id, :version, :target, :app, :definition, :payload, :options, :priority, :keep, :key, :key_limit,
  :key_when_busy, :unstamped, :anchor, :cursor, :remaining, :nextAt, :dueAt, :line, :createdAt, :updatedAt, :pausedAt,
  :pauseNote, :finishedAt, :onFinish);
