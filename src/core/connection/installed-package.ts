import { createRequire } from 'node:module'

/** Loads an optional package. Undefined when it is not installed; an error inside the package is thrown. */
export function installedPackage<Package>(name: string): Package | undefined {
  const require = createRequire(import.meta.url)
  try {
    require.resolve(name)
  } catch {
    return undefined
  }
  return require(name) as Package
}
