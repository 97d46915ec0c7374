/** Runs a command with a client of a service or store, and explains the errors of both. */
import { type BelfryClient, ServiceError } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { settingSources } from '../settings/config-file.js'
import { formatOf, type Target, targetOf } from '../settings/operator-settings.js'
import { Output } from '../terminal/output.js'
import type { Flags } from './client-options.js'
import { fieldErrorText } from './field-errors.js'
import { openClient } from './open-client.js'

export interface CommandContext {
  readonly client: BelfryClient
  readonly out: Output
}

export async function withClient(flags: Flags, work: (context: CommandContext) => Promise<void>): Promise<void> {
  const sources = await settingSources(flags)
  const target = targetOf(sources)
  const out = new Output(formatOf(sources))
  const { client, close } = await openClient(target)
  try {
    await work({ client, out })
  } catch (error) {
    throw explained(error, target)
  } finally {
    await close()
  }
}

function explained(error: unknown, target: Target): unknown {
  if (!(error instanceof ServiceError)) return error
  const detail = fieldErrorText(error)
  if (detail !== undefined) return new ServiceError({ ...error.problem, detail }, { cause: error })
  if (error.code !== 'UNREACHABLE' || 'store' in target) return error
  const what = target.isDefault
    ? 'start one with belfry serve, or choose one with --url or --store'
    : 'is it running, and reachable from here?'
  return failure('STORE_UNREACHABLE', `${error.message}: ${what}`, { cause: error })
}
