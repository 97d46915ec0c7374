import { createRequire } from 'node:module'

/** A package that the user installs beside Belfry, if it is there. What is wrong inside of it is not hidden. */
export function installedPackage<Package>(name: string): Package | undefined {
  const require = createRequire(import.meta.url)
  try {
    require.resolve(name)
  } catch {
    return undefined
  }
  return require(name) as Package
}
