#include "ttserver/core/call.h"

void ttcore_reply(struct ttcore_call *call, const struct proto_message *message)
{
    ttcore_actions_send(call->actions, message, 0, 1);
}

void ttcore_error(struct ttcore_call *call, enum proto_error_code code, uint32_t request,
                  const char *text)
{
    struct proto_message answer = {.type = PROTO_ERROR};
    answer.error = (struct proto_error){(uint16_t)code, request, proto_text_of(text)};
    ttcore_reply(call, &answer);
}

void ttcore_refuse(struct ttcore_call *call, enum proto_error_code code, uint32_t request,
                   const char *text)
{
    call->core->count.refused++;
    ttcore_error(call, code, request, text);
}
