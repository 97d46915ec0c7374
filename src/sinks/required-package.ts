import { installedPackage } from '../core/connection/installed-package.js'
import { failure } from '../core/errors.js'

/** Loads an optional peer dependency, or throws with the command that installs it. */
export function requiredPackage<Package>(name: string, where: string): Package {
  const found = installedPackage<Package>(name)
  if (found !== undefined) return found
  throw failure('UNSUPPORTED', `${where} needs the package ${name}: npm install ${name}`)
}
