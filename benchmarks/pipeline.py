"""Home Assistant's Assist pipeline with "prefer_local_intents" as a contender, with text as input."""

from typing import Any

from homeassistant.components.assist_pipeline.models import Pipeline, PipelineEvent, PipelineEventType, PipelineStage
from homeassistant.components.assist_pipeline.run import PipelineInput, PipelineRun

from custom_components.windowed_conversation.bridge.chat_log import async_open_session
from tests.routing.homes import Home
from tests.routing.judge import Say, make_sender, said_in
from tests.routing.stub import Stub

# The response of a run that ends with an error.
_ERROR_RESPONSE = {"response_type": "error", "data": {"code": "failed_to_handle"}, "speech": {}}


async def make_pipeline_sayer(home: Home, agent_id: str, stub: Stub) -> Say:
    """Return a Say function for a pipeline that asks this agent if no local intent matches."""
    pipeline = Pipeline(
        conversation_engine=agent_id,
        conversation_language=home.plan.language,
        language=home.plan.language,
        name="Local first",
        prefer_local_intents=True,
        stt_engine=None,
        stt_language=None,
        tts_engine=None,
        tts_language=None,
        tts_voice=None,
        wake_word_entity=None,
        wake_word_id=None,
    )

    async def converse(text: str, conversation_id: str, language: str) -> Any:
        heard: list[Any] = [_ERROR_RESPONSE]

        def on_event(event: PipelineEvent) -> None:
            if event.type is PipelineEventType.INTENT_END and event.data:
                heard.append(event.data["intent_output"]["response"])

        said = said_in(home, text, conversation_id, language)
        with async_open_session(home.hass, said) as session:
            run = PipelineRun(
                home.hass,
                context=said.context,
                pipeline=pipeline,
                start_stage=PipelineStage.INTENT,
                end_stage=PipelineStage.INTENT,
                event_callback=on_event,
            )
            heard_by_it = PipelineInput(
                run=run,
                session=session,
                intent_input=text,
                device_id=said.device_id,
                satellite_id=said.satellite_id,
            )
            await heard_by_it.execute(validate=True)
        return heard[-1]

    return make_sender(converse, stub)
