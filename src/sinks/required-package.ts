import { failure } from '../core/errors.js'
import { installedPackage } from '../core/installed-package.js'

/** Loads an optional peer dependency, or throws with the command that installs it. */
export function requiredPackage<Package>(name: string, where: string): Package {
  const found = installedPackage<Package>(name)
  if (found !== undefined) return found
  throw failure('UNSUPPORTED', `${where} needs the package ${name}: npm install ${name}`)
}
