import { failure } from '../core/errors.js'
import { installedPackage } from '../core/installed-package.js'

/** A client that the user installs beside Belfry; of its package only the few calls that are made are typed. */
export function peer<Package>(name: string, where: string): Package {
  const found = installedPackage<Package>(name)
  if (found !== undefined) return found
  throw failure('UNSUPPORTED', `${where} needs the package ${name}: npm install ${name}`)
}
