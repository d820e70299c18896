/* Decides and learns with an agent that manul has saved: `decide FILE.manul`.
 *
 *   cc decide.c -I FOLDER_OF_MANUL_H -L FOLDER_OF_LIBMANUL -lmanul -o decide
 */
#include <manul.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*size + 1);
  if (bytes != NULL) *size = fread(bytes, 1, *size, file);
  fclose(file);
  return bytes;
}

static int fail(const manul_error *error) {
  fprintf(stderr, "%s\n", error->sentence);
  return 1;
}

int main(int count, char **arguments) {
  manul_error error = {"", ""};
  size_t size = 0;
  unsigned char *bytes = count == 2 ? read_file(arguments[1], &size) : NULL;
  if (bytes == NULL) {
    fprintf(stderr, "usage: decide FILE.manul\n");
    return 2;
  }
  manul_agent *agent = manul_open(bytes, size, &error);
  free(bytes);
  if (agent == NULL) return fail(&error);
  printf("%s\n", manul_describe(agent));

  static const char *contexts[] = {
      "{\"city\": \"Oslo\", \"age\": 31, \"at\": {\"$date\": \"2024-02-29\"}}",
      "{\"city\": \"Bergen\", \"age\": null, \"tags\": [\"new\"]}",
      "{\"city\": 7}", /* which was a text: refused in one sentence */
  };
  int failures = 0;
  for (int i = 0; i < 3; ++i) {
    manul_decision decision;
    if (manul_decide(agent, manul_json(contexts[i]), "[10, 30]", NULL, &decision, &error) != 0) {
      printf("%s\n", error.sentence);
      ++failures;
      continue;
    }
    printf("decision %llu: %.17g with density %.17g\n", (unsigned long long)decision.number, decision.values[0].value,
           decision.density);
    const double reward = decision.values[0].value < 25.0 ? decision.values[0].value - 9.0 : 0.0;
    if (manul_learn(agent, manul_json(contexts[i]), &decision, reward, &error) != 0) return fail(&error);
  }

  unsigned char *saved = NULL;
  if (manul_save(agent, &saved, &size, &error) != 0) return fail(&error);
  printf("saved %zu bytes\n", size);
  manul_free_bytes(saved);
  manul_free(agent);
  return failures == 1 ? 0 : 1;
}
