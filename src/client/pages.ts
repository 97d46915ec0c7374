/** A page of a list. Pass `nextCursor` as `cursor` for the next page. */
export interface Page<Item> {
  readonly data: readonly Item[]
  readonly nextCursor: string | null
}

export interface Paging {
  readonly cursor?: string
  readonly limit?: number
}

/** All items of a list; loads pages as they are needed. */
export async function* pagesOf<Item>(list: (paging: Paging) => Promise<Page<Item>>): AsyncGenerator<Item> {
  let cursor: string | null = null
  do {
    const page: Page<Item> = await list(cursor === null ? {} : { cursor })
    yield* page.data
    cursor = page.nextCursor
  } while (cursor !== null)
}
