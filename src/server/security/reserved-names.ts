/** The dedupe keys of repeated requests begin with this. No request may give such a key, so no caller can occupy one. */
export const IDEMPOTENCY_NAMESPACE = 'belfry:idempotency:'
