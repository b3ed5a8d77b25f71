/** The key of a person's answer among a run's events. */
export function answerKey(questionId: string): string {
  return `question/${questionId}/answered`;
}
