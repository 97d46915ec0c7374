import type { NewOperation, OperationResource } from '../server/shapes/operation.js'
import { pause } from './pause.js'
import { type Requests, segment } from './request.js'

const ROOT = '/v1/operations'
/** Pauses between two questions about an operation grow up to this. */
const MAX_PAUSE_MS = 2_000

export interface WaitOptions {
  readonly signal?: AbortSignal
  /** Called with each answer about the operation. */
  readonly onProgress?: (operation: OperationResource) => void
}

export class OperationClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  start(operation: NewOperation): Promise<OperationResource> {
    return this.#requests.json(ROOT, { method: 'POST', body: operation })
  }

  get(id: string): Promise<OperationResource | undefined> {
    return this.#requests.found(`${ROOT}/${segment(id)}`)
  }

  cancel(id: string): Promise<OperationResource> {
    return this.#requests.json(`${ROOT}/${segment(id)}/cancel`, { method: 'POST', body: {} })
  }

  /** Asks until the operation has ended. */
  async wait(id: string, { signal, onProgress }: WaitOptions = {}): Promise<OperationResource> {
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const found = await this.#requests.json<OperationResource>(`${ROOT}/${segment(id)}`, {
        ...(signal === undefined ? {} : { signal }),
      })
      onProgress?.(found)
      if (found.state !== 'running') return found
      await pause(pauseMs, signal)
      signal?.throwIfAborted()
    }
  }
}
