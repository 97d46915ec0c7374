/** GET /v1/events: streams changes of runs, and events of this process, as server-sent events. */
import type { RunEvent } from '../../api/runs/run-feed.js'
import type { Belfry } from '../../belfry.js'
import { errorRecord } from '../../core/errors.js'
import type { EventMap, EventName } from '../../engine/events.js'
import { EventStream } from '../http/event-stream.js'
import { type Route, route } from '../http/route.js'
import type { Caller } from '../security/caller.js'
import { whileAuthorised } from '../security/guard.js'
import { isVisible, seesAll } from '../security/visibility.js'
import { type ProcessEvent, streamEvent } from '../shapes/event.js'
import { toRunSummary } from '../shapes/run.js'

const CURSOR = /^\d{1,16}$/
const STREAM_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }

export function eventsRoute(belfry: Belfry): Route {
  return route({
    ...{ method: 'get', path: '/v1/events', id: 'streamEvents', tag: 'events', role: 'viewer' },
    summary:
      'A stream of events: `ready` once it is complete, `run` for each run that is new or changed (without payload and result), `gone` when a run no longer exists, `instance` for events of this process, and `reset` when events were missed: reload.',
    headers: {
      'Last-Event-ID': 'Resume after this event. If its successors are no longer known, the stream sends `reset`.',
    },
    answers: {
      200: { description: 'Server-sent events.', line: streamEvent, type: 'text/event-stream' },
    },
    handle: async (c) => {
      const caller = c.get('caller')
      const closing = c.env.closing
      const leave = c.env.concurrency.streams.enter(caller.name)
      const stream = new EventStream()
      const close = () => stream.close()
      const unwatch = await belfry.runs
        .watch((news) => send(stream, caller, news))
        .catch((error: unknown) => {
          leave()
          throw error
        })
      const unwatchProcess = watchProcess(belfry, stream, caller)
      const { signal } = c.req.raw
      closing.addEventListener('abort', close)
      signal.addEventListener('abort', close)
      const unwatchCaller = whileAuthorised(c, close)
      stream.onEnd(() => {
        leave()
        unwatchCaller()
        closing.removeEventListener('abort', close)
        signal.removeEventListener('abort', close)
        unwatch()
        unwatchProcess()
      })
      // The body of a HEAD response is never read, so its stream would never end.
      if (closing.aborted || signal.aborted || c.req.raw.method === 'HEAD') close()
      await catchUp(belfry, stream, caller, c.req.header('last-event-id')).catch((error: unknown) => {
        close()
        throw error
      })
      return { status: 200, headers: STREAM_HEADERS, body: stream.body }
    },
  })
}

/** Sends the changes since the client's last event, then `ready`: from here on the stream is complete. */
async function catchUp(belfry: Belfry, stream: EventStream, caller: Caller, last: string | undefined): Promise<void> {
  const now = (await belfry.now()).getTime()
  if (last !== undefined && last !== '') {
    const isOurs = CURSOR.test(last) && Number(last) <= now
    const missed = isOurs ? await belfry.runs.changedSince(new Date(Number(last))) : undefined
    if (missed === undefined) stream.send('reset', { reason: 'gap' }, String(now))
    else for (const run of missed) send(stream, caller, { kind: 'run', run, at: now })
  }
  stream.send('ready', { instance: belfry.instance }, String(now))
}

function send(stream: EventStream, caller: Caller, news: RunEvent): void {
  const id = String(news.at)
  if (news.kind === 'gap') stream.send('reset', { reason: 'gap' }, id)
  else if (news.kind === 'gone') {
    // The owner of a pruned run is unknown, so only callers who see everything get the event.
    if (seesAll(caller)) stream.send('gone', { id: news.id }, id)
  } else if (isVisible(caller, 'run', news.run)) stream.send('run', toRunSummary(news.run), id)
}

type ProcessEventName = Extract<EventName, ProcessEvent['event']>

const PROCESS_EVENTS: readonly ProcessEventName[] = [
  'instance:joined',
  'instance:lost',
  'lock:lost',
  'runs:taken-over',
  'store:unreachable',
  'store:recovered',
  'sink:unreachable',
  'sink:recovered',
]

function watchProcess(belfry: Belfry, stream: EventStream, caller: Caller): () => void {
  const unwatches = PROCESS_EVENTS.map((name) =>
    belfry.on(name, (event) => {
      if (isVisible(caller, 'event', event)) stream.send('instance', { event: name, ...shown(event) })
    }),
  )
  return () => {
    for (const unwatch of unwatches) unwatch()
  }
}

function shown(event: EventMap[ProcessEventName]): Record<string, unknown> {
  return 'error' in event ? { ...event, error: errorRecord(event.error).message } : { ...event }
}
