#include "worker/redis/redis_script.h"

/* KEYS and ARGV of each script: `row` in redis_shell_call.c. */

/* Lua, as one line; comments are C's. An empty text is "", since C knows no empty character. */
#define LUA(...) #__VA_ARGS__

/* clang-format off */

/* Reads all keys at once, and refuses a call of another life or of an expired session. */
#define BEGIN LUA( \
    local u, p, sub, char, concat = struct.unpack, struct.pack, string.sub, string.char, table.concat; \
    local call, pcall = redis.call, redis.pcall; \
    local v = call('MGET', unpack(KEYS)); \
    if v[1] ~= ARGV[1] then return 1 end; \
    if not v[2] then return 2 end; \
)

/* set: writes, until the server refuses to: then `fault` is why. `seconds` is a text: Redis formats
 * numbers slowly. */
#define WRITE LUA( \
    local fault; \
    local function set(key, seconds, value) \
        if fault then return false end; \
        fault = pcall('SETEX', key, seconds, value).err; \
        return not fault; \
    end; \
)

/* clean: a list without those whose session ended or whose time is over, and how many are left.
 * A session is read once in a call. */
#define HOLDERS LUA( \
    local now; \
    local function clock() \
        now = now or tonumber(call('TIME')[1]); \
        return now; \
    end; \
    local known = {[ARGV[2]] = v[2]}; \
    local function session(id) \
        local s = known[id]; \
        if s == nil then \
            s = pcall('GET', ARGV[3] .. id); \
            s = type(s) == 'string' and s; \
            known[id] = s; \
        end; \
        return s; \
    end; \
    local function clean(list) \
        local t, at = clock(), 1; \
        while at <= #list do \
            if #list - at >= 9 and u('>I4', list, at + 6) > t and session(sub(list, at, at + 3)) then \
                at = at + 10; \
            else \
                list = sub(list, 1, at - 1) .. sub(list, at + 10); \
            end; \
        end; \
        return list, #list / 10; \
    end; \
)

/* record: of the results of a value (none, or up to 4 of different depths, one after another) that of
 * `depth`, else the deepest: itself and what it says; or nil if there is none. A value of another
 * length, or with numbers that no result has, counts as none, and is written over. `place` is where
 * it begins, in a value of several. */
#define SOUND LUA( \
    local function place(r, depth) \
        if #r % 9 ~= 0 or #r > 36 then return nil end; \
        local at, most = nil, -1; \
        for i = 1, #r, 9 do \
            local d, lower, upper = u('>Bi2i2', r, i); \
            if d > 250 or lower < -32767 or lower > upper then return nil end; \
            if d == depth then d = 251 end; \
            if d > most then at, most = i, d end; \
        end; \
        return at; \
    end; \
    local function record(r, depth) \
        if not r then return nil end; \
        if #r ~= 9 then \
            local at = place(r, depth); \
            if not at then return nil end; \
            r = sub(r, at, at + 8); \
        end; \
        local d, lower, upper, move = u('>Bi2i2I2', r); \
        if d > 250 or lower < -32767 or lower > upper then return nil end; \
        return r, d, lower, upper, move; \
    end; \
)

/* Numbers of holders as they travel, by number. */
#define COUNTS LUA( \
    local counts = {[0] = char(0, 0), char(0, 1), char(0, 2), char(0, 3)}; \
    local function count(n) return counts[n] or p('>I2', n < 65535 and n or 65535) end; \
    local NONE = char(0, 128, 1, 127, 255, 0, 0, 0, 0); \
)

const char *const redis_script_text[REDIS_SCRIPT_COUNT] = {

[REDIS_ASK] = BEGIN WRITE HOLDERS COUNTS SOUND LUA(
    local me4, age, ops = ARGV[2], ARGV[4], ARGV[5];
    local verdicts = {[0] = char(0), char(1), char(2)};
    local out, o = {}, 0;
    local until_ = p('>I4', clock() + age);
    for at = 1, #ops - 11, 12 do
        local ri, ii, alpha, beta, depth, flags = u('>I2I2i2i2BB', ops, at);
        local list, n, verdict, mine = v[ii], 0, 0, nil;
        local me = me4 .. sub(ops, at + 10, at + 11);
        local best, d, lower, upper = record(v[ri], flags > 1 and depth);
        if best then
            if (d == depth or (d > depth and flags < 2)) and
               (lower >= beta or upper <= alpha or lower == upper) then
                verdict = 1;
            end;
        end;
        if list then
            list, n = clean(list);
            for i = 1, #list, 10 do
                if sub(list, i, i + 5) == me then mine = i end;
            end;
        end;
        if verdict == 0 and flags % 2 == 1 and n > (mine and 1 or 0) then
            verdict = 2;
        elseif verdict == 0 then
            if mine then
                list = sub(list, 1, mine + 5) .. until_ .. sub(list, mine + 10);
            else
                list = n > 0 and list .. me .. until_ or me .. until_;
                n = n + 1;
            end;
            if list ~= v[ii] then
                if set(KEYS[ii], age, list) then
                    v[ii] = list;
                elseif not mine then
                    n = n - 1;
                end;
            end;
        end;
        out[o + 1], out[o + 2], out[o + 3] = verdicts[verdict], best or NONE, count(n);
        o = o + 3;
    end;
    return {concat(out), fault};
),

/* leave: takes (me, slot) out of a list; returns what is left of the others, or nil. A node that
 * nobody is in any more has no key. Where the shorter list cannot be written, the key goes, too:
 * that others are not counted costs less than one who is gone and is. */
#define LEAVE LUA( \
    local gone = {}; \
    local function leave(ii, me, age) \
        local list = v[ii]; \
        if not list then return nil end; \
        local before = list; \
        for at = 1, #list - 9, 10 do \
            if sub(list, at, at + 5) == me then \
                list = sub(list, 1, at - 1) .. sub(list, at + 10); \
                break; \
            end; \
        end; \
        if list ~= "" then list = clean(list) end; \
        if list == "" then \
            gone[#gone + 1] = KEYS[ii]; \
            v[ii] = false; \
            return nil; \
        end; \
        if list ~= before then \
            v[ii] = list; \
            if not set(KEYS[ii], age, list) then gone[#gone + 1] = KEYS[ii] end; \
        end; \
        return list; \
    end; \
)

/* others: the results of a value but that of `depth`. Where one has to go, because there would be 5
 * with that, it is the shallowest; those of this generation stay longest. */
#define OTHERS LUA( \
    local function others(r, depth, generation) \
        local list, n, least, first = {}, 0, 512, nil; \
        for at = 1, #r, 9 do \
            local d = r:byte(at); \
            if d ~= depth then \
                n = n + 1; \
                list[n] = sub(r, at, at + 8); \
                if sub(r, at + 7, at + 8) == generation then d = d + 256 end; \
                if d < least then least, first = d, n end; \
            end; \
        end; \
        if n > 3 then table.remove(list, first) end; \
        return concat(list); \
    end; \
)

[REDIS_STORE] = BEGIN WRITE HOLDERS LEAVE SOUND OTHERS LUA(
    local me4, age, ops, ttl = ARGV[2], ARGV[4], ARGV[5], ARGV[7];
    local generation = v[3] and #v[3] == 2 and v[3] or char(0, 0);
    local notices;
    for at = 1, #ops - 19, 20 do
        local depth, score, bound, move, slot, ri, ii = u('>Bi2BI2c2I2I2', ops, at + 8);
        local lower, upper, beside = score, score, bound > 3;
        if beside then bound = bound - 4 end;
        if bound == 1 then upper = 32767 elseif bound == 2 then lower = -32767 end;
        local best, d, l, h, m = record(v[ri], beside and depth);
        if not (best and not beside and d > depth and sub(best, 8) == generation) then
            if best then
                local low, high = l > lower and l or lower, h < upper and h or upper;
                if d == depth and low <= high then
                    if l > lower or (l == lower and move == 0) then move = m end;
                    lower, upper = low, high;
                elseif move == 0 and lower == -32767 then
                    move = m;
                end;
            end;
            local r = p('>Bi2i2I2c2', depth, lower, upper, move, generation);
            if beside and best and (d ~= depth or #v[ri] > 9) then
                r = r .. others(v[ri], depth, generation);
            end;
            if set(KEYS[ri], ttl, r) then v[ri] = r end;
        end;
        local left = leave(ii, me4 .. slot, age);
        if left then
            for i = 1, #left, 10 do
                local id = sub(left, i, i + 3);
                local s = session(id);
                /* flag 1: it wants NODE_DONE */
                if #s > 16 and s:byte(17) % 2 == 1 then
                    notices = notices or {};
                    local of = notices[id] or {};
                    of[ii] = sub(ops, at, at + 13);
                    notices[id] = of;
                end;
            end;
        end;
    end;
    if #gone > 0 then pcall('DEL', unpack(gone)) end;
    local sent = 0;
    if notices then
        for id, of in pairs(notices) do
            local list = {};
            for _, notice in pairs(of) do list[#list + 1] = notice end;
            sent = sent + #list;
            pcall('PUBLISH', 'abdada:c:' .. sub(session(id), 1, 16), ARGV[6] .. 'n' .. concat(list));
        end;
    end;
    return {sent, fault};
),

[REDIS_RELEASE] = BEGIN WRITE HOLDERS LEAVE LUA(
    local me4, age, ops = ARGV[2], ARGV[4], ARGV[5];
    for at = 1, #ops - 3, 4 do
        leave(u('>I2', ops, at + 2), me4 .. sub(ops, at, at + 1), age);
    end;
    if #gone > 0 then pcall('DEL', unpack(gone)) end;
    return {0, fault};
),

/* The depth asked is the last byte of an i. */
[REDIS_PEEK] = BEGIN HOLDERS COUNTS SOUND LUA(
    local out, o, byte = {}, 0, string.byte;
    for i = 3, #KEYS, 2 do
        local r, list, n = v[i], v[i + 1], 0;
        local best = r and record(r, #r > 9 and byte(KEYS[i + 1], -1));
        if list then list, n = clean(list) end;
        out[o + 1], out[o + 2] = best or NONE, count(n);
        o = o + 2;
    end;
    return {concat(out)};
),

/* A key of another type under our prefix gives way. */
#define FIRM LUA( \
    local call, pcall = redis.call, redis.pcall; \
    local fault; \
    local function firm(command, key, ...) \
        local r = pcall(command, key, ...); \
        if type(r) == 'table' and r.err then \
            if r.err:find('WRONGTYPE', 1, true) then \
                call('DEL', key); \
                r = pcall(command, key, ...); \
            end; \
            if type(r) == 'table' and r.err then \
                fault = fault or r.err; \
                return false; \
            end; \
        end; \
        return r; \
    end; \
    local function text(key) \
        local r = firm('GET', key); \
        return type(r) == 'string' and r; \
    end; \
    local t = call('TIME'); \
    local now = t[1] * 1000 + math.floor(t[2] / 1000); \
)

/* A HELLO begins a life where there is none, and a session where there is none: under the fresh id,
 * so that nobody who was in a node under an old one comes back. One that is said again finds the
 * session that the first has begun: a record tells by its token whose it is. Answers: boot, is the id fresh,
 * rank, workers, jv, JOBs if jv is another than known, jobs, and after a HELLO the server's version and
 * maxmemory-policy */
[REDIS_SESSION] = FIRM LUA(
    local is_hello, ttl, id = ARGV[10] == '1', tonumber(ARGV[5]), ARGV[2];
    local boot, key, is_fresh = text(KEYS[1]), KEYS[2], 0;
    if is_hello and not boot then
        boot = ARGV[1];
        firm('SET', KEYS[1], boot);
    elseif not is_hello and boot ~= ARGV[1] then
        return 1;
    end;
    local token, old = ARGV[4]:sub(1, 16), text(key);
    if not old or old:sub(1, 16) ~= token then
        if not is_hello then return 2 end;
        id, key, is_fresh = ARGV[3], KEYS[3], 1;
        old = text(key);
        if old and old:sub(1, 16) ~= token then return 3 end;
    end;
    if not firm('SET', key, ARGV[4], 'PX', ttl) then
        if is_fresh == 1 then return {fault} end;
        pcall('PEXPIRE', key, ttl);
    end;
    firm('ZADD', KEYS[4], now + ttl, id);
    local over = firm('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 64) or {};
    for _, one in ipairs(over) do
        firm('ZREM', KEYS[4], one);
        firm('ZREM', KEYS[5], one);
    end;
    if #over > 0 then firm('HINCRBY', KEYS[10], 'sessions_expired', #over) end;
    if ARGV[6] == 'w' then
        firm('ZADD', KEYS[5], 'NX', now, id);
    elseif is_hello then
        firm('ZREM', KEYS[5], id);
    end;
    if is_hello then
        if is_fresh == 1 then firm('HINCRBY', KEYS[10], 'sessions_opened', 1) end;
        firm('SREM', KEYS[6], id);
    end;
    if ARGV[11] == '1' then
        firm('SADD', KEYS[7], id);
        firm('EXPIRE', KEYS[7], 86400);
    end;
    for i = 12, #ARGV - 1, 2 do firm('HINCRBY', KEYS[10], ARGV[i], ARGV[i + 1]) end;
    for _, job in ipairs(firm('ZRANGEBYSCORE', KEYS[8], '-inf', now) or {}) do
        firm('ZREM', KEYS[8], job);
        firm('DEL', ARGV[8] .. job);
        firm('INCR', KEYS[9]);
        pcall('PUBLISH', 'abdada:w', ARGV[9] .. 's' .. string.char(1) .. job);
    end;
    local rank, workers = 0, 0;
    if ARGV[6] == 'w' then
        rank, workers = firm('ZRANK', KEYS[5], id) or 0, firm('ZCARD', KEYS[5]) or 0;
    end;
    local jv, jobs = text(KEYS[9]) or '0', {};
    local open = firm('ZCARD', KEYS[8]) or 0;
    local is_list = ARGV[6] == 'w' and jv ~= ARGV[7] and 1 or 0;
    if is_list == 1 then
        for _, job in ipairs(firm('ZRANGE', KEYS[8], 0, 63) or {}) do
            local record = text(ARGV[8] .. job);
            if record and #record > 34 then
                jobs[#jobs + 1] = record:sub(35 + record:byte(34));
            end;
        end;
    end;
    local about = "";
    if is_hello then
        local info = pcall('INFO');
        if type(info) == 'string' then
            about = (info:match('redis_version:(%d+%.%d+)') or '0.0') .. ' ' ..
                    (info:match('maxmemory_policy:([%w-]+)') or "");
        end;
    end;
    return {boot, is_fresh, rank, workers, jv, is_list, jobs, open, about, fault};
),

[REDIS_BYE] = FIRM LUA(
    firm('DEL', KEYS[1]);
    firm('ZREM', KEYS[2], ARGV[1]);
    firm('ZREM', KEYS[3], ARGV[1]);
    firm('SREM', KEYS[4], ARGV[1]);
    for i = 2, #ARGV - 1, 2 do firm('HINCRBY', KEYS[5], ARGV[i], ARGV[i + 1]) end;
    return 0;
),

[REDIS_POST] = FIRM LUA(
    if text(KEYS[1]) ~= ARGV[1] then return 1 end;
    if not text(KEYS[2]) then return 2 end;
    local old, is_home = text(KEYS[3]), ARGV[8] == '1';
    local head = ARGV[3] .. ARGV[4];
    if old and #old >= 34 then
        if old:sub(17, 24) ~= ARGV[4] then return 3 end;
        head = head .. old:sub(25, 33);
        firm('EXPIRE', KEYS[6], 172800);
    else
        if is_home and (firm('ZCARD', KEYS[4]) or 0) >= tonumber(ARGV[10]) then return 4 end;
        head = head .. struct.pack('>I8B', now, 0);
        firm('SET', KEYS[6], ARGV[2]:sub(1, 2), 'EX', 172800);
        if is_home then
            firm('INCR', KEYS[5]);
            pcall('PUBLISH', 'abdada:w', ARGV[9] .. 'j' .. ARGV[6]);
        end;
    end;
    firm('SET', KEYS[3], head .. string.char(#ARGV[5]) .. ARGV[5] .. ARGV[6], 'PX', ARGV[7]);
    if is_home then firm('ZADD', KEYS[4], now + ARGV[7], ARGV[2]) end;
    return {0, fault};
),

/* The last reports of a stopped job still reach its owner for a while. */
[REDIS_STOP] = FIRM LUA(
    if text(KEYS[1]) ~= ARGV[1] then return 1 end;
    local record = text(KEYS[3]);
    if not record or #record < 34 then return 0 end;
    if record:sub(17, 24) ~= ARGV[3] then return 3 end;
    firm('SET', KEYS[3], record:sub(1, 24), 'PX', 10000);
    if ARGV[5] == '1' then
        firm('ZREM', KEYS[4], ARGV[2]);
        firm('INCR', KEYS[5]);
        pcall('PUBLISH', 'abdada:w', ARGV[4] .. 's' .. string.char(0) .. ARGV[2]);
    end;
    return {0, fault};
),

/* The owner's reports go to nobody: they are for people, and stand against those of workers. */
[REDIS_REPORT] = FIRM LUA(
    if text(KEYS[1]) ~= ARGV[1] then return 1 end;
    if not text(KEYS[2]) then return 2 end;
    local record, depth = text(KEYS[3]), tonumber(ARGV[2]);
    if not record or #record < 24 then return 5 end;
    local is_open = #record >= 34;
    if ARGV[6] ~= "" then
        if is_open and depth > 0 and record:sub(17, 24) == ARGV[6] then
            firm('SET', KEYS[4], 'f' .. ARGV[5], 'PX', 600000);
        end;
        return {0, fault};
    end;
    if is_open or ARGV[3] ~= '0' then
        pcall('PUBLISH', 'abdada:c:' .. record:sub(1, 16), ARGV[4] .. 'r' .. ARGV[5]);
    end;
    if not is_open then return 5 end;
    if depth > record:byte(33) then
        if (text(KEYS[4]) or ""):sub(1, 1) ~= 'f' then
            firm('SET', KEYS[4], 'w' .. ARGV[5], 'PX', 600000);
        end;
        local left = call('PTTL', KEYS[3]);
        if left > 0 then
            record = record:sub(1, 32) .. string.char(depth) .. record:sub(34);
            firm('SET', KEYS[3], record, 'PX', left);
        end;
    end;
    return {0, fault};
),

/* To two at most, drawn: what each receives does not grow with their number. */
[REDIS_SHARE] = FIRM LUA(
    if text(KEYS[1]) ~= ARGV[1] then return 1 end;
    if not text(KEYS[2]) then return 2 end;
    local sent = 0;
    for _, id in ipairs(firm('SRANDMEMBER', KEYS[3], 8) or {}) do
        if id ~= ARGV[2] and sent < 2 then
            local s = text(ARGV[4] .. id);
            if not s or #s < 38 then
                firm('SREM', KEYS[3], id);
            elseif s:sub(19, 26) ~= ARGV[3] or not ARGV[3]:find('[^%z]') then
                pcall('PUBLISH', 'abdada:c:' .. s:sub(1, 16), ARGV[5] .. 'h' .. ARGV[6]);
                sent = sent + 1;
            end;
        end;
    end;
    return {sent, fault};
),

/* Answers: id, record, ms until it expires ... */
[REDIS_MEMBERS] = FIRM LUA(
    local out = {};
    local got = firm('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES') or {};
    for i = 1, #got, 2 do
        local n = #out;
        out[n + 1], out[n + 2] = got[i], text(ARGV[3] .. got[i]) or "";
        out[n + 3] = math.floor(got[i + 1] - now);
    end;
    return {#got / 2, out};
),

/* Answers: how many were read, then record, age in ms, workers, progress ... */
[REDIS_JOBS] = FIRM LUA(
    local out, searching = {}, {};
    for _, id in ipairs(firm('ZRANGE', KEYS[2], 0, -1) or {}) do
        local s = text(ARGV[4] .. id);
        if s and #s >= 38 then
            local job = s:sub(27, 34);
            searching[job] = (searching[job] or 0) + 1;
        end;
    end;
    local got = firm('ZRANGE', KEYS[1], ARGV[1], ARGV[2]) or {};
    for _, id in ipairs(got) do
        local record, n = text(ARGV[3] .. id), #out;
        if record and #record > 34 then
            out[n + 1], out[n + 3] = record, searching[id] or 0;
            out[n + 2] = math.max(0, now - struct.unpack('>I8', record, 25));
            out[n + 4] = text(ARGV[5] .. id) or "";
        end;
    end;
    return {#got, out};
),

/* Answers: names and numbers ... */
[REDIS_STATS] = FIRM LUA(
    local out = firm('HGETALL', KEYS[1]) or {};
    local function add(name, value)
        out[#out + 1] = name;
        out[#out + 1] = string.format('%.0f', value or 0);
    end;
    local live, roles = firm('ZRANGEBYSCORE', KEYS[2], now, '+inf') or {}, {0, 0, 0, 0};
    for _, id in ipairs(live) do
        local s = text(ARGV[1] .. id);
        local role = s and #s >= 38 and s:byte(18) + 1 or 5;
        if roles[role] then roles[role] = roles[role] + 1 end;
    end;
    add('sessions', #live);
    add('workers', roles[1]);
    add('fronts', roles[2]);
    add('monitors', roles[4]);
    add('jobs', firm('ZCARD', KEYS[4]));
    local info = pcall('INFO');
    if type(info) == 'string' then
        local function field(name) return tonumber(info:match(name .. ':(%d+)')) end;
        add('uptime_ms', (field('uptime_in_seconds') or 0) * 1000);
        add('memory_bytes', field('used_memory'));
    end;
    return {0, out};
),

/* Answers: the next cursor, then key and result in one text, at most 1024 (a page of the protocol):
 * each step sees some 128 keys, of up to 4 results. */
[REDIS_SCAN] = FIRM LUA(local u, sub = struct.unpack, string.sub;) SOUND LUA(
    if text(KEYS[1]) ~= ARGV[1] then return 1 end;
    local cursor, out, steps = ARGV[2], {}, 0;
    local skip, least = #ARGV[3] - 1, tonumber(ARGV[4]);
    repeat
        local got = call('SCAN', cursor, 'MATCH', ARGV[3], 'COUNT', 128);
        local names = got[2];
        cursor, steps = got[1], steps + 1;
        if #names > 0 and ARGV[5] == '1' then
            local r = pcall('UNLINK', unpack(names));
            if type(r) == 'table' then return r end;
        elseif #names > 0 then
            for i, r in ipairs(call('MGET', unpack(names))) do
                if #names[i] == skip + 8 and record(r) then
                    for at = 1, #r, 9 do
                        if r:byte(at) >= least then
                            out[#out + 1] = sub(names[i], skip + 1) .. sub(r, at, at + 8);
                        end;
                    end;
                end;
            end;
        end;
    until cursor == '0' or steps == 4 or #out > 384;
    return {cursor, table.concat(out)};
),

};

/* clang-format on */
