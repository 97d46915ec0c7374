import { BelfryError } from '../core/errors.js'

/** Prefixes an error with the option's name: parsers know the problem, but not the option. */
export function located<T>(where: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Error && !error.message.startsWith(where)) error.message = `${where}: ${error.message}`
    throw error
  }
}

/** Prefixes the `path` of an error, for an input that is a part of a larger one. */
export async function locatedBelow<T>(path: readonly string[], parse: () => Promise<T>): Promise<T> {
  try {
    return await parse()
  } catch (error) {
    if (error instanceof BelfryError && error.path !== undefined) error.path = [...path, ...error.path]
    throw error
  }
}
