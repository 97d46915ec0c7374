/**
 * Agents that keep connections for the next request. Node limits the idle connections of each host. Here all hosts share one
 * limit, because schedules may name any number of hosts, and a process has only so many sockets.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Agents } from './post.js'

const MAX_IDLE = 256
/** How long an idle connection is kept: long enough for a schedule that fires every minute. */
const IDLE_MS = 90_000

export function keepAliveAgents(lookup: LookupFunction): Agents {
  const settings = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS, lookup }
  return { http: new LimitedHttpAgent(settings), https: new LimitedHttpsAgent(settings) }
}

class LimitedHttpAgent extends HttpAgent {
  override keepSocketAlive(socket: Duplex): unknown {
    closeOldest(this.freeSockets)
    return super.keepSocketAlive(socket)
  }
}

class LimitedHttpsAgent extends HttpsAgent {
  override keepSocketAlive(socket: Duplex): unknown {
    closeOldest(this.freeSockets)
    return super.keepSocketAlive(socket)
  }
}

function closeOldest(idle: HttpAgent['freeSockets']): void {
  const open = Object.values(idle)
    .flatMap((sockets = []): readonly Socket[] => sockets)
    .filter(({ destroyed }) => !destroyed)
  if (open.length >= MAX_IDLE) open[0]?.destroy()
}
