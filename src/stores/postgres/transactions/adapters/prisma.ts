import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** What Belfry calls of the client in Prisma's `$transaction`. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: string[]): PromiseLike<unknown>
}

/** `prisma.$transaction((tx) => job.enqueue(payload, { tx: fromPrisma(tx) }))` */
export function fromPrisma(tx: PrismaTransaction): CallerTransaction {
  return { query: async (sql, values) => rowsIn(await tx.$queryRawUnsafe(sql, ...values)) }
}
