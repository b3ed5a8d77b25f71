/** An owner's manifest that cannot be used, and why. */
export class ManifestError extends Error {
  override readonly name = "ManifestError";
}
