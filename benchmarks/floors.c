/* The least that each part of a crawled page costs: no checks, no repair of markup, no rules, no text beyond ASCII rules.

   usage: floors ADDRESS PORT < paths, one a line. Prints "part microseconds-a-page" lines. Built by floors.py. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { PAGES = 20000, ROOM = 4 << 20, LINKS = 20000, SLOTS = 1 << 20, GRAMS = 1 << 18, BATCH = 50 };
typedef struct { const char *start; int length; } Piece;

static char *paths[PAGES], *wires[PAGES], *bodies[PAGES];
static int count, wire_bytes[PAGES], body_bytes[PAGES];
static char *text, *packed, *link_row;
static int text_bytes, link_count, row_bytes;
static Piece hrefs[LINKS];
static uint64_t known[SLOTS], digest_sum, targets[LINKS];
static uint8_t grams[GRAMS];
static unsigned scores[8];
static int fresh_count;
static uint64_t fresh[LINKS];

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static uint64_t hash(const char *at, size_t length) { /* eight bytes a step */
    uint64_t value = length * 0x9E3779B97F4A7C15u, word;
    for (; length >= 8; at += 8, length -= 8) {
        memcpy(&word, at, 8);
        value = (value ^ word) * 0x9FB21C651E98DF25u;
        value ^= value >> 29;
    }
    word = 0;
    memcpy(&word, at, length);
    value = (value ^ word) * 0x9FB21C651E98DF25u;
    return value ^ value >> 32;
}

static void fetch(int number, int connection) { /* one request on a connection that stays open */
    char head[4096];
    int length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: floor\r\nAccept-Encoding: gzip\r\n\r\n", paths[number]);
    int filled = 0, size = -1, begin = 0;
    char *answer = malloc(ROOM);
    if (write(connection, head, length) != length) exit(2);
    while (size < 0 || filled < begin + size) {
        int got = read(connection, answer + filled, ROOM - filled - 1);
        if (got <= 0) exit(3);
        filled += got;
        answer[filled] = 0;
        char *end = size < 0 ? strstr(answer, "\r\n\r\n") : NULL;
        if (end) {
            char *field = strcasestr(answer, "content-length:");
            size = field ? atoi(field + 15) : 0;
            begin = end + 4 - answer;
        }
    }
    wires[number] = malloc(size + 1);
    memcpy(wires[number], answer + begin, size);
    wire_bytes[number] = size;
    free(answer);
}

static void inflate_page(int number) {
    static char *out;
    z_stream stream = {0};
    if (!out) out = malloc(ROOM);
    inflateInit2(&stream, 31);
    stream.next_in = (Bytef *)wires[number];
    stream.avail_in = wire_bytes[number];
    stream.next_out = (Bytef *)out;
    stream.avail_out = ROOM;
    inflate(&stream, Z_FINISH);
    int length = stream.total_out;
    inflateEnd(&stream);
    if (!bodies[number]) {
        bodies[number] = malloc(length + 16);
        memcpy(bodies[number], out, length);
        memset(bodies[number] + length, 0, 16);
        body_bytes[number] = length;
    }
}

static const char *skip_raw(const char *at, const char *end, const char *name, int length) {
    for (; at < end; at++)
        if ((at = memchr(at, '<', end - at)) == NULL) return end;
        else if (at[1] == '/' && !strncasecmp(at + 2, name, length)) return at;
    return end;
}

static void read_page(int number) { /* one pass: words with single spaces, a line a block, and href and src */
    const char *at = bodies[number], *end = at + body_bytes[number];
    char *out = text;
    link_count = 0;
    while (at < end) {
        if (*at != '<') {
            *out = *at > ' ' || *at < 0 ? *at : ' ';
            out += *out != ' ' || (out > text && out[-1] > ' ') || (out > text && out[-1] < 0);
            at++;
            continue;
        }
        const char *name = ++at;
        if (at[0] == '!' && at[1] == '-' && at[2] == '-') {
            at = strstr(at, "-->");
            at = at ? at + 3 : end;
            continue;
        }
        while (*at && *at != '>' && *at != ' ' && *at != '\n') at++;
        int length = at - name, is_inline = length == 1 || (length == 2 && name[0] == '/') || length >= 4;
        while (*at && *at != '>') {
            while (*at == ' ' || *at == '\n' || *at == '/' || *at == '\t') at++;
            const char *attribute = at;
            while (*at && *at != '=' && *at != '>' && *at != ' ' && *at != '\n') at++;
            int width = at - attribute;
            if (*at != '=') continue;
            char quote = *++at;
            const char *value = at;
            if (quote == '"' || quote == '\'') {
                value++;
                at = memchr(value, quote, end - value);
                if (!at) at = end - 1;
            } else while (*at && *at != '>' && *at != ' ') at++;
            if (((width == 4 && !memcmp(attribute, "href", 4)) || (width == 3 && !memcmp(attribute, "src", 3))) && link_count < LINKS)
                hrefs[link_count++] = (Piece){value, at - value};
            if (quote == '"' || quote == '\'') at++;
        }
        at++;
        if (length == 6 && !strncasecmp(name, "script", 6)) at = skip_raw(at, end, "script", 6);
        if (length == 5 && !strncasecmp(name, "style", 5)) at = skip_raw(at, end, "style", 5);
        if (!is_inline && out > text && out[-1] != '\n') *out++ = '\n';
    }
    text_bytes = out - text;
}

static int join(const char *page, Piece href, char *out) { /* a path below the root; dots removed */
    int length = 0;
    const char *sharp = memchr(href.start, '#', href.length);
    int width = sharp ? sharp - href.start : href.length;
    if (memchr(href.start, ':', width)) {
        memcpy(out, href.start, width);
        return width;
    }
    if (!width || href.start[0] != '/') {
        const char *slash = strrchr(page, '/');
        length = width ? slash - page + 1 : (int)strlen(page);
        memcpy(out, page, length);
    }
    for (int at = 0; at < width;) {
        if (href.start[at] == '.' && at + 2 < width + 1 && href.start[at + 1] == '.' && (at + 2 == width || href.start[at + 2] == '/')) {
            if (length > 1) for (length--; length > 1 && out[length - 1] != '/'; length--);
            at += 3;
            continue;
        }
        while (at < width && (out[length++] = href.start[at++]) != '/');
    }
    return length;
}

static void resolve_links(int number) { /* addresses, a table of those known, and a row of targets without repeats */
    char address[1 << 16];
    int distinct = 0;
    fresh_count = 0;
    for (int link = 0; link < link_count; link++) {
        if (hrefs[link].length > 2000) continue;
        uint64_t key = hash(address, join(paths[number], hrefs[link], address)) | 1;
        uint64_t slot = key & (SLOTS - 1);
        while (known[slot] && known[slot] != key) slot = (slot + 1) & (SLOTS - 1);
        if (!known[slot]) known[slot] = fresh[fresh_count++] = key;
        targets[distinct++] = key;
    }
    row_bytes = distinct * 8;
    memcpy(link_row, targets, row_bytes);
}

static void judge_language(void) { /* every third byte triple of the first 20,000 bytes, by a table */
    memset(scores, 0, sizeof scores);
    for (int at = 0; at + 3 < text_bytes && at < 20000; at++) {
        uint32_t key = (uint8_t)text[at] << 16 | (uint8_t)text[at + 1] << 8 | (uint8_t)text[at + 2];
        scores[grams[(key * 2654435761u) >> 14] & 7]++;
    }
    digest_sum += scores[0];
}

static void digest(int number) {
    digest_sum += hash(bodies[number], body_bytes[number]);
    digest_sum += hash(text, text_bytes);
}

static size_t pack(int number, ZSTD_CCtx *context) { /* text and body as one frame, at the level of the product */
    static char *whole;
    if (!whole) whole = malloc(2 * ROOM);
    memcpy(whole, text, text_bytes);
    memcpy(whole + text_bytes, bodies[number], body_bytes[number]);
    return ZSTD_compressCCtx(context, packed, 2 * ROOM, whole, text_bytes + body_bytes[number], 2);
}

static void store(int number, size_t size, sqlite3 *database, sqlite3_stmt **insert) {
    if (number % BATCH == 0) sqlite3_exec(database, "BEGIN", 0, 0, 0);
    sqlite3_bind_int64(insert[0], 1, number);
    sqlite3_bind_text(insert[0], 2, paths[number], -1, SQLITE_STATIC);
    sqlite3_bind_blob(insert[0], 3, packed, size, SQLITE_STATIC);
    sqlite3_bind_blob(insert[0], 4, link_row, row_bytes, SQLITE_STATIC);
    sqlite3_step(insert[0]);
    sqlite3_reset(insert[0]);
    for (int row = 0; row < fresh_count; row++) {
        sqlite3_bind_int64(insert[1], 1, (sqlite3_int64)fresh[row]);
        sqlite3_bind_text(insert[1], 2, paths[number], -1, SQLITE_STATIC);
        sqlite3_step(insert[1]);
        sqlite3_reset(insert[1]);
    }
    if (number % BATCH == BATCH - 1 || number == count - 1) sqlite3_exec(database, "COMMIT", 0, 0, 0);
}

int main(int argc, char **argv) {
    char line[8192];
    double spent[8] = {0}, begin;
    const char *names[] = {"wire", "inflate", "read", "links", "language", "digests", "pack", "rows"};
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    int connection = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    sqlite3 *database;
    sqlite3_stmt *insert[2];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (argc < 4) return 1;
    inet_pton(AF_INET, argv[1], &place.sin_addr);
    if (connect(connection, (struct sockaddr *)&place, sizeof place)) return 4;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    text = malloc(ROOM), packed = malloc(2 * ROOM), link_row = malloc(8 * LINKS);
    sqlite3_open(argv[3], &database);
    sqlite3_exec(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "CREATE TABLE page (id INTEGER PRIMARY KEY, url TEXT, body BLOB, links BLOB);"
        "CREATE TABLE url (id INTEGER PRIMARY KEY, text TEXT) WITHOUT ROWID", 0, 0, 0);
    sqlite3_prepare_v2(database, "INSERT INTO page VALUES (?, ?, ?, ?)", -1, &insert[0], 0);
    sqlite3_prepare_v2(database, "INSERT OR IGNORE INTO url VALUES (?, ?)", -1, &insert[1], 0);
    while (count < PAGES && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        paths[count++] = strdup(line);
    }
    for (int number = 0; number < count; number++) {
        size_t size;
#define PART(at, action) begin = now_us(); action; spent[at] += now_us() - begin
        PART(0, fetch(number, connection));
        PART(1, inflate_page(number));
        PART(2, read_page(number));
        PART(3, resolve_links(number));
        PART(4, judge_language());
        PART(5, digest(number));
        PART(6, size = pack(number, context));
        PART(7, store(number, size, database, insert));
    }
    for (int part = 0; part < 8; part++) printf("%s %.1f\n", names[part], spent[part] / count);
    fprintf(stderr, "%d pages, %d bytes of text on the last, %llx\n", count, text_bytes, (unsigned long long)digest_sum);
    sqlite3_close(database);
    return 0;
}
