import type { LeaseResource, LockResource } from '../server/shapes/lock.js'
import type { LockRenewal, LockRequest } from '../server/shapes/requests.js'
import { type Page, type Paging, pagesOf } from './pages.js'
import { type Requests, segment } from './request.js'
import { ServiceError } from './service-error.js'

type Held = Pick<LeaseResource, 'token'> & Partial<Pick<LeaseResource, 'holder'>>

export class LockClient {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  list(query: Paging & { readonly prefix?: string } = {}): Promise<Page<LeaseResource>> {
    return this.#requests.json('/v1/locks', { query: { ...query } })
  }

  all(query: { readonly prefix?: string; readonly limit?: number } = {}): AsyncGenerator<LeaseResource> {
    return pagesOf((paging) => this.list({ ...query, ...paging }))
  }

  get(name: string): Promise<LockResource> {
    return this.#requests.json(pathOf(name))
  }

  /** Undefined when another holder has the lock. */
  acquire(name: string, options: LockRequest = {}, signal?: AbortSignal): Promise<LeaseResource | undefined> {
    const ask = { method: 'PUT', body: options, ...(signal === undefined ? {} : { signal }) }
    return this.#unless('LOCK_BUSY', this.#requests.json<LeaseResource>(pathOf(name), ask))
  }

  /** Undefined when the lock was lost. */
  renew(
    name: string,
    { token, holder }: Held,
    ttl?: LockRenewal['ttl'],
    signal?: AbortSignal,
  ): Promise<LeaseResource | undefined> {
    const ask = { method: 'PATCH', body: { token, holder, ttl }, ...(signal === undefined ? {} : { signal }) }
    return this.#unless('LEASE_LOST', this.#requests.json<LeaseResource>(pathOf(name), ask))
  }

  /** Returns false when the lock was lost. */
  async release(name: string, { token, holder }: Held): Promise<boolean> {
    const released = this.#requests.send(pathOf(name), { method: 'DELETE', query: { token, holder } })
    return (await this.#unless('LEASE_LOST', released)) !== undefined
  }

  /** Takes the lock from all its holders. Needs the role admin. */
  reset(name: string): Promise<{ readonly reset: number }> {
    return this.#requests.json(`${pathOf(name)}/reset`, { method: 'POST', body: {} })
  }

  async #unless<Answer>(code: string, answer: Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await answer
    } catch (error) {
      if (error instanceof ServiceError && error.code === code) return undefined
      throw error
    }
  }
}

function pathOf(name: string): string {
  return `/v1/locks/${segment(name)}`
}
