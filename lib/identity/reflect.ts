/**
 * What tsyringe, which @peculiar/x509 finds its parts with, asks of a "reflect-metadata" package before it loads. None
 * of x509's classes has metadata, so the true answer to both questions is that there is none.
 */
const reflect: typeof Reflect & { getMetadata?: () => undefined; getOwnMetadata?: () => undefined } = Reflect;
reflect.getMetadata ??= () => undefined;
reflect.getOwnMetadata ??= () => undefined;
