/** The types of `text-modules.js`, which is plain JavaScript so that Node can run the build. */
export interface TextModules {
  readonly name: string
  load(id: string): { readonly code: string; readonly moduleType: 'js' } | undefined
}

export function textModules(): TextModules

export function textOf(file: string, included?: Set<string>): string
