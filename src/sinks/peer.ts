import { createRequire } from 'node:module'
import { failure } from '../core/errors.js'

/** A client that the user installs beside Belfry; of its package only the few calls that are made are typed. */
export function peer<Package>(name: string, where: string): Package {
  const require = createRequire(import.meta.url)
  try {
    require.resolve(name)
  } catch (cause) {
    throw failure('UNSUPPORTED', `${where} needs the package ${name}: npm install ${name}`, { cause })
  }
  return require(name) as Package
}
